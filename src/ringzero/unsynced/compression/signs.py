"""Numbers as signs: a bit for each, and an fp32 weight for all in a chunk. A number becomes its weight, or minus that.

A mean over the ranks takes two exchanges. Each rank gets everyone's signs of one chunk, the chunk that it owns, and
adds them up. Then all ranks get the signs of the sums.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from ringzero.collectives.formats import encoded, floats, packed, to_all, to_owners, unpacked

WEIGHT = 4  # bytes


def mean_magnitude(values: Tensor) -> Tensor:
    """0 if there are no values."""
    return values.abs().sum() / max(values.numel(), 1)


@dataclass(frozen=True)
class Signs:
    """A ``collectives.formats.Format``. ``weight(values)`` is a tensor of one number."""

    zeros_are_positive: bool = True
    weight: Callable[[Tensor], Tensor] = mean_magnitude

    def bytes(self, numel: int) -> int:
        return WEIGHT + -(-numel // 8)

    def encode(self, values: Tensor) -> Tensor:
        bits = values >= 0 if self.zeros_are_positive else values > 0
        return torch.cat([self.weight(values).float().view(1).view(torch.uint8), packed(bits, 1)])

    def decode(self, wire: Tensor, numel: int) -> Tensor:
        bits = unpacked(wire[WEIGHT : self.bytes(numel)], 1)[:numel]
        return (bits.float() * 2 - 1) * floats(wire[:WEIGHT])


def chunks_of_bytes(values: Tensor, ranks: int) -> list[Tensor]:
    """1-D ``values`` cut into a chunk for each rank, each a multiple of 8 long; the last ones may be shorter."""
    width = 8 * -(-values.numel() // (8 * ranks))
    return [values[rank * width : (rank + 1) * width] for rank in range(ranks)]


def mean_by_signs(
    values: Tensor, owed: Tensor, group: dist.ProcessGroup, ranks: int, zeros_are_positive: bool = True
) -> Tensor:
    """The mean of 1-D ``values``, a sum divided by ``ranks``, as far as signs tell it; the same bits on all ranks.

    A chunk's weight is its mean magnitude. ``owed`` is added to the mean of this rank's chunk. Afterwards ``values``
    hold what this rank's signs have not said, and ``owed`` what the signs of that mean have not said.
    """
    signs, chunks, mean = Signs(zeros_are_positive), chunks_of_bytes(values, group.size()), torch.empty_like(values)
    rows = encoded(signs, chunks)
    for row, chunk in zip(rows, chunks, strict=True):
        chunk -= signs.decode(row, chunk.numel())
    owed += sum(signs.decode(row, owed.numel()) for row in to_owners(rows, group)) / ranks
    means = chunks_of_bytes(mean, group.size())
    means[group.rank()].copy_(owed)
    to_all(signs, means, group)
    owed -= means[group.rank()]
    return mean
