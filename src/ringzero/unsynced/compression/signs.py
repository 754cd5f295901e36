"""Numbers as signs: a bit for each, and an fp32 weight for all in a chunk. A number becomes its weight, or minus that.

A mean over the ranks takes two exchanges. An all-to-all brings each rank everyone's signs of one chunk, the chunk that
it owns. It adds them up, and an all-gather hands round the signs of the sums.
"""

from dataclasses import dataclass

import torch
import torch.distributed as dist

from ringzero.collectives import all_gather, all_to_all
from ringzero.unsynced.compression.packing import packed, unpacked

WEIGHT = 4  # bytes


@dataclass(frozen=True)
class Chunks:
    """``numel`` values cut into a chunk for each rank of ``group``. Each takes whole bytes; the last may be shorter."""

    numel: int
    group: dist.ProcessGroup

    @property
    def width(self) -> int:
        return 8 * -(-self.numel // (8 * self.group.size()))

    @property
    def mine(self) -> slice:
        """The values of the chunk that this rank owns."""
        start = min(self.group.rank() * self.width, self.numel)
        return slice(start, min(start + self.width, self.numel))

    def cut(self, values: torch.Tensor) -> torch.Tensor:
        """A row for each chunk, with zeros at the end."""
        size = self.group.size() * self.width
        return torch.nn.functional.pad(values, (0, size - self.numel)).view(-1, self.width)

    def mean_magnitudes(self, values: torch.Tensor) -> torch.Tensor:
        """Of the values in each chunk; 0 for one without any."""
        starts = torch.arange(self.group.size(), device=values.device) * self.width
        sizes = (self.numel - starts).clamp(1, self.width)
        return self.cut(values).abs().sum(1) / sizes

    def to_owners(self, wire: torch.Tensor) -> torch.Tensor:
        """Give row r to rank r. Returns the rows that this rank gets, one from each rank."""
        arrived = torch.empty_like(wire)
        all_to_all(arrived, wire, group=self.group)
        return arrived

    def to_all(self, row: torch.Tensor) -> torch.Tensor:
        """The rows of all ranks."""
        everyone = row.new_empty(self.group.size(), row.numel())
        everyone[self.group.rank()] = row
        return all_gather(everyone, group=self.group)


def encode(rows: torch.Tensor, weights: torch.Tensor, zeros_are_positive: bool = True) -> torch.Tensor:
    """``rows`` of numbers, with a weight each, as rows of bytes."""
    bits = rows >= 0 if zeros_are_positive else rows > 0
    head = weights.float()[:, None].contiguous().view(torch.uint8)
    return torch.cat([head, packed(bits.view(-1), 1).view(len(rows), -1)], 1)


def decode(wire: torch.Tensor) -> torch.Tensor:
    """The rows of numbers in rows of bytes, fp32: each is its row's weight, or minus that."""
    weights = wire[:, :WEIGHT].clone(memory_format=torch.contiguous_format).view(torch.float32)
    bits = unpacked(wire[:, WEIGHT:].reshape(-1), 1).view(len(wire), -1)
    return (bits.float() * 2 - 1) * weights


def mean_by_signs(
    values: torch.Tensor, owed: torch.Tensor, chunks: Chunks, ranks: int, zeros_are_positive: bool = True
) -> torch.Tensor:
    """The mean of 1-D ``values``, a sum divided by ``ranks``, as far as signs tell it; the same bits on all ranks.

    A chunk's weight is its mean magnitude. In ``values`` is then what this rank's signs have not said, and in ``owed``,
    which is added to the mean of this rank's chunk before, what the signs of that mean have not said.
    """
    numel = values.numel()
    sent = encode(chunks.cut(values), chunks.mean_magnitudes(values), zeros_are_positive)
    values -= decode(sent).view(-1)[:numel]
    mean = decode(chunks.to_owners(sent)).sum(0) / ranks + owed
    size = values[chunks.mine].numel()
    mean[size:] = 0
    verdict = encode(mean[None], mean.abs().sum()[None] / max(size, 1), zeros_are_positive)
    owed.copy_(mean - decode(verdict)[0])
    owed[size:] = 0
    return decode(chunks.to_all(verdict[0])).view(-1)[:numel].to(values.dtype)
