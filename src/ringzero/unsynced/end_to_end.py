"""Tensors end to end as one flat vector, and back."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import Parameter

from ringzero.collectives.schedule import chunk_bounds


def joined(
    tensors: Iterable[Tensor], dtype: torch.dtype | None = None, device: torch.device | str | None = None
) -> Tensor:
    """The numbers of ``tensors`` end to end, as new memory: of their type and on their device, or as given."""
    parts = [tensor.detach().reshape(-1) for tensor in tensors]
    return torch.cat([part.to(device=device or part.device, dtype=dtype or part.dtype) for part in parts])


def views(vector: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """The parts of ``vector`` in which the ``tensors`` lie end to end, each in the shape of its tensor."""
    parts = vector.split([tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]


def write_back(vector: Tensor, tensors: Sequence[Tensor]) -> None:
    """Copy the parts of ``vector`` to the ``tensors``."""
    for tensor, part in zip(tensors, views(vector, tensors), strict=True):
        tensor.detach().copy_(part)


def chunks_of(vector: Tensor, ranks: int) -> list[Tensor]:
    """``vector`` cut into a chunk for each rank, as collectives cut it."""
    return [vector[start:stop] for start, stop in pairwise(chunk_bounds(vector.numel(), ranks).tolist())]


def gradients_of(named: Mapping[str, Parameter]) -> list[Tensor]:
    """The gradients of the parameters. Raises RuntimeError, which names those that have none."""
    if missing := [name for name, parameter in named.items() if parameter.grad is None]:
        raise RuntimeError(f"no gradient for {', '.join(missing)}; freeze what the loss does not depend on")
    return [parameter.grad for parameter in named.values() if parameter.grad is not None]


def check_one_type(named: Mapping[str, Tensor]) -> None:
    """Raise ValueError, which names two parameters, unless all have one type: a server's share is one vector."""
    (first, one), *others = named.items()
    for other, tensor in others:
        if tensor.dtype != one.dtype:
            raise ValueError(
                f"{first} is {one.dtype} and {other} is {tensor.dtype}; a server takes parameters of one type"
            )
