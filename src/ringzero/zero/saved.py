"""What asks for a unit of stage 3 in a backward pass: its parameters' gradients, and what autograd saved of its memory.

Hooks on what a unit returns have it gathered, too: a function of the program's own may keep a parameter without a word
to autograd. But something may leave the unit by another way, such as an attribute; and a parameter's gradient is put
beside the parameter, so that it must have its size.
"""

from typing import Any, NamedTuple
from weakref import WeakValueDictionary, ref

import torch

_unit_in: WeakValueDictionary[int, Any] = WeakValueDictionary()  # by the storage of a vector


def remember(unit: Any, memory: torch.Tensor) -> None:
    """What is saved of ``memory`` asks for ``unit``."""
    _unit_in[memory.untyped_storage()._cdata] = unit


def before_gradient(unit: Any, parameter: torch.nn.Parameter) -> Any:
    """A hook on one of its parameters, frozen or not, which does not keep the unit alive. Returns its handle."""
    weak, is_trained = ref(unit), parameter.requires_grad

    def hook(_gradient: torch.Tensor) -> None:
        unit = weak()
        if unit is not None:
            unit.gatherer.before_backward(unit)

    try:
        return parameter.requires_grad_(True).register_hook(hook)  # torch takes none on what is frozen
    finally:
        parameter.requires_grad_(is_trained)


class Saved(NamedTuple):
    tensor: torch.Tensor  # detached: one that an operation saved of its own results would keep itself alive
    version: int
    unit: Any


def save(tensor: torch.Tensor) -> Saved:
    unit = _unit_in.get(tensor.untyped_storage()._cdata) if tensor.layout == torch.strided else None
    return Saved(tensor.detach(), tensor._version, unit)


def read(saved: Saved) -> torch.Tensor:
    if saved.unit is not None:
        saved.unit.gatherer.before_backward(saved.unit)
    elif saved.tensor._version != saved.version:  # autograd itself looks no more
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: a tensor "
            f"of shape {tuple(saved.tensor.shape)} is at version {saved.tensor._version}, expected {saved.version}"
        )
    return saved.tensor
