"""A model's values in one buffer of bytes, so that a model is one message whatever types its parameters have."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from ringzero.collectives.torchs import write
from ringzero.unsynced.end_to_end import views, write_back


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
