"""Tensors end to end: as one vector of numbers, or, where their types differ, as one buffer of bytes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import Parameter

from ringzero.collectives.torchs import write
from ringzero.data_parallel.vector import dense


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


def gradients_of(named: Mapping[str, Parameter]) -> list[Tensor]:
    """The gradients of the parameters. Raises RuntimeError, which names those that have none."""
    if missing := [name for name, parameter in named.items() if parameter.grad is None]:
        raise RuntimeError(f"no gradient for {', '.join(missing)}; freeze what the loss does not depend on")
    return [parameter.grad for parameter in named.values() if parameter.grad is not None]


def take_gradient(parameters: Sequence[Parameter]) -> Tensor:
    """The gradients end to end on the CPU, zeros where there is none; then the parameters have none."""
    vector = joined((torch.zeros_like(p) if p.grad is None else dense(p.grad) for p in parameters), device="cpu")
    for parameter in parameters:
        parameter.grad = None
    return vector


def check_one_type(named: Mapping[str, Tensor]) -> None:
    """Raise ValueError, which names two parameters, unless all have one type: a server's share is one vector."""
    (first, one), *others = named.items()
    for other, tensor in others:
        if tensor.dtype != one.dtype:
            raise ValueError(
                f"{first} is {one.dtype} and {other} is {tensor.dtype}; a server takes parameters of one type"
            )


class Packed:
    """Where the values of ``tensors`` lie in a buffer of ``nbytes`` bytes: those of a type together.

    The longest numbers come first, so each begins at a multiple of its own size.
    """

    def __init__(self, tensors: Iterable[Tensor]):
        kinds: dict[torch.dtype, list[Tensor]] = defaultdict(list)
        for tensor in tensors:
            kinds[tensor.dtype].append(tensor)
        self._kinds = sorted(kinds.items(), key=lambda kind: -kind[0].itemsize)
        self._sizes = [sum(tensor.nbytes for tensor in alike) for _, alike in self._kinds]
        self.nbytes = sum(self._sizes)

    def empty(self, device: torch.device) -> Tensor:
        """A buffer, uint8."""
        return torch.empty(self.nbytes, dtype=torch.uint8, device=device)

    def put(self, buffer: Tensor) -> None:
        """Copy the tensors' values into ``buffer``."""
        for tensor, part in self._parts(buffer):
            part.copy_(tensor.detach())

    def take(self, buffer: Tensor) -> None:
        """Give the tensors the values in ``buffer``."""
        for tensor, part in self._parts(buffer):
            write(tensor, part)

    def take_sum(self, weighted: Iterable[tuple[float, Tensor]]) -> None:
        """Give the tensors the sum of weight times value over pairs ``(weight, buffer)``, added up in their order.

        Sums of 16-bit numbers are fp32.
        """
        weights, buffers = zip(*weighted, strict=True)
        for (dtype, alike), *numbers in zip(self._kinds, *map(self._numbers, buffers), strict=True):
            wide = torch.promote_types(dtype, torch.float32)
            total = numbers[0].to(wide) * weights[0]
            for weight, theirs in zip(weights[1:], numbers[1:], strict=True):
                total.add_(theirs.to(wide), alpha=weight)
            write_back(total, alike)

    def _parts(self, buffer: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Each tensor, and where its values lie in the buffer, in its shape."""
        for (_, alike), numbers in zip(self._kinds, self._numbers(buffer), strict=True):
            yield from zip(alike, views(numbers, alike), strict=True)

    def _numbers(self, buffer: Tensor) -> list[Tensor]:
        """1-D views of the buffer, one for each type."""
        return [part.view(dtype) for part, (dtype, _) in zip(buffer.split(self._sizes), self._kinds, strict=True)]
