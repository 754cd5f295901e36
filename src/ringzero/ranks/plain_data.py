"""Plain data across a process boundary: JSON for structure, safetensors for tensors.

What a rank returns is read by a process that must not trust it (a grader, say), so it never travels as a pickle. A
value is a tree of None, bool, int, float, complex, str, bytes, list, tuple, set, dict, ``torch.Tensor`` and NumPy
arrays; a range or a view of a dict becomes a list. The tree is written as JSON into the metadata of one safetensors
file that holds the tensors.
"""

import base64
import json
from collections.abc import Callable, MappingView
from os import PathLike
from typing import Any

from ringzero.processes.leftovers import regular

SCALARS = (type(None), bool, int, float, str)  # as they are in JSON; Python writes floats so that they come back exact
PLAIN_TYPES = "None, bool, numbers, str, bytes, list, tuple, set, dict, torch.Tensor or NumPy array"


def dump(value: Any, path: str | PathLike[str]) -> None:
    """Write ``value`` to the file ``path``.

    Raises TypeError naming the place and type of the first thing that is not plain data, and ValueError for a tensor
    whose memory was freed.
    """
    from safetensors.torch import save_file

    tensors: dict[str, Any] = {}
    tree = _encode(value, tensors, "the returned value")
    save_file(tensors, path, metadata={"tree": json.dumps(tree)})


def load(path: str | PathLike[str]) -> Any:
    """Read a value written by ``dump``; tensors come back on the CPU.

    Raises ValueError when the file is not one that ``dump`` wrote.
    """
    from safetensors import safe_open

    try:
        open(path, "rb", opener=regular).close()
        with safe_open(path, framework="pt") as file:
            tree = json.loads((file.metadata() or {})["tree"])
            return _decode(tree, file.get_tensor)
    except MemoryError:
        raise
    except Exception as error:  # a rank may have written anything, on which a reader fails in any way
        raise ValueError(f"{path} does not hold plain data ({type(error).__name__}: {error})") from None


def _encode(value: Any, tensors: dict[str, Any], where: str) -> Any:
    """A JSON tree: scalars as they are, everything else as ``{kind: payload}``."""
    import numpy
    import torch

    if isinstance(value, numpy.generic):
        value = value.item()
    if type(value) in SCALARS:
        return value
    if type(value) is complex:
        return {"complex": [value.real, value.imag]}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, (list, range, MappingView)):  # d.keys() and the like arrive as lists
        return {"list": _encode_all(value, tensors, where)}
    if isinstance(value, tuple):
        return {"tuple": _encode_all(value, tensors, where)}
    if isinstance(value, (set, frozenset)):
        return {"set": _encode_all(list(value), tensors, where)}
    if isinstance(value, dict):
        return {
            "dict": [
                [k if type(k) is str else _encode(k, tensors, f"a key of {where}"),
                 v if type(v) in SCALARS else _encode(v, tensors, f"{where}[{k!r}]")]
                for k, v in value.items()
            ]
        }  # fmt: skip
    if isinstance(value, torch.Tensor) and value.layout == torch.strided:
        last = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
        if value.numel() and (value.storage_offset() + last + 1) * value.itemsize > value.untyped_storage().nbytes():
            raise ValueError(f"{where} is a tensor whose memory was freed, or a view of such a one: make a copy before")
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


def _encode_all(values, tensors, where):
    return [v if type(v) in SCALARS else _encode(v, tensors, f"{where}[{i}]") for i, v in enumerate(values)]


def _decode_all(trees, get_tensor):
    return [_decode(tree, get_tensor) if isinstance(tree, dict) else tree for tree in trees]


def _decode(tree: Any, get_tensor: Callable[[str], Any]) -> Any:
    if not isinstance(tree, dict):
        return tree
    ((kind, payload),) = tree.items()
    match kind:
        case "complex":
            return complex(*payload)
        case "bytes":
            return base64.b64decode(payload)
        case "list":
            return _decode_all(payload, get_tensor)
        case "tuple":
            return tuple(_decode_all(payload, get_tensor))
        case "set":
            return set(_decode_all(payload, get_tensor))
        case "dict":
            return dict(_decode_all(pair, get_tensor) for pair in payload)
        case "tensor":
            return get_tensor(payload)
        case "complex_tensor":
            import torch

            return torch.view_as_complex(get_tensor(payload))
        case "array":
            return _decode(payload, get_tensor).numpy()
    raise KeyError(f"unknown kind {kind!r}")
