"""Plain data across a process boundary: JSON for structure, safetensors for tensors.

What a rank returns is read by a process that must not trust it (a grader, say), so it
never travels as a pickle. A value is a tree of None, bool, int, float, complex, str,
bytes, list, tuple, dict, ``torch.Tensor`` and NumPy arrays; the tree is written as JSON
into the metadata of one safetensors file that holds the tensors.
"""

import base64
import json

from ringzero.launch import leftovers

PLAIN_TYPES = "None, bool, numbers, str, bytes, list, tuple, dict, torch.Tensor or NumPy array"


def dump(value, path):
    """Write ``value`` to the file ``path``.

    Raises TypeError naming the place and type of the first thing that is not plain data.
    """
    from safetensors.torch import save_file

    tensors = {}
    tree = _encode(value, tensors, "the returned value")
    save_file(tensors, path, metadata={"tree": json.dumps(tree)})


def load(path):
    """Read a value written by ``dump``; tensors come back on the CPU.

    Raises ValueError when the file is not one that ``dump`` wrote.
    """
    from safetensors import SafetensorError, safe_open

    try:
        open(path, "rb", opener=leftovers.regular).close()
        with safe_open(path, framework="pt") as file:
            tree = json.loads((file.metadata() or {})["tree"])
            return _decode(tree, file.get_tensor)
    except (SafetensorError, OSError, KeyError, TypeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} does not hold plain data ({type(error).__name__}: {error})") from None


def _encode(value, tensors, where):
    """A JSON tree: scalars as they are, everything else as ``{kind: payload}``."""
    import numpy
    import torch

    if isinstance(value, numpy.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return {"float": value.hex()}  # exact, and JSON has no nan or inf
    if type(value) is complex:
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return {"list": [_encode(v, tensors, f"{where}[{i}]") for i, v in enumerate(value)]}
    if isinstance(value, tuple):
        return {"tuple": [_encode(v, tensors, f"{where}[{i}]") for i, v in enumerate(value)]}
    if isinstance(value, dict):
        return {
            "dict": [
                [_encode(k, tensors, f"a key of {where}"), _encode(v, tensors, f"{where}[{k!r}]")]
                for k, v in value.items()
            ]
        }
    if isinstance(value, torch.Tensor) and value.layout == torch.strided:
        name = str(len(tensors))
        flat = value.detach().resolve_conj().cpu().clone(memory_format=torch.contiguous_format)
        if flat.is_complex():  # safetensors has no complex128
            tensors[name] = torch.view_as_real(flat)
            return {"complex_tensor": name}
        tensors[name] = flat
        return {"tensor": name}
    if isinstance(value, numpy.ndarray) and value.dtype.hasobject is False:
        return {"array": _encode(torch.from_numpy(value.copy()), tensors, where)}
    raise TypeError(
        f"{where} is a {type(value).__module__}.{type(value).__qualname__}; a rank returns plain data "
        f"({PLAIN_TYPES}). Return the numbers or tensors you need from it."
    )


def _decode(tree, get_tensor):
    if not isinstance(tree, dict):
        return tree
    ((kind, payload),) = tree.items()
    match kind:
        case "float":
            return float.fromhex(payload)
        case "complex":
            return complex(float.fromhex(payload[0]), float.fromhex(payload[1]))
        case "bytes":
            return base64.b64decode(payload)
        case "list":
            return [_decode(v, get_tensor) for v in payload]
        case "tuple":
            return tuple(_decode(v, get_tensor) for v in payload)
        case "dict":
            return {_decode(k, get_tensor): _decode(v, get_tensor) for k, v in payload}
        case "tensor":
            return get_tensor(payload)
        case "complex_tensor":
            import torch

            return torch.view_as_complex(get_tensor(payload))
        case "array":
            return _decode(payload, get_tensor).numpy()
    raise KeyError(f"unknown kind {kind!r}")
