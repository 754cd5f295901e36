"""Numbers in fewer bits on the wire: how they are encoded, and the two exchanges that make a mean of them.

Encoded numbers cannot be summed on their way. So each rank gets all ranks' numbers of one chunk, decodes them and
sums them (``to_owners``). Then it encodes the sum, and all ranks get all chunks (``to_all``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from ringzero.collectives.api import all_gather, all_to_all
from ringzero.collectives.schedule import chunk_bounds


class Format(Protocol):
    """How numbers look on the wire."""

    def bytes(self, numel: int) -> int:
        """What ``numel`` numbers take."""

    def encode(self, values: Tensor) -> Tensor:
        """Of 1-D ``values``: their bytes, uint8."""

    def decode(self, wire: Tensor, numel: int) -> Tensor:
        """``numel`` numbers, fp32, from bytes of which more may follow."""


@dataclass(frozen=True)
class Float:
    """Numbers rounded to a floating-point type of fewer bits."""

    dtype: torch.dtype

    def bytes(self, numel: int) -> int:
        return numel * self.dtype.itemsize

    def encode(self, values: Tensor) -> Tensor:
        return values.to(self.dtype).view(torch.uint8)

    def decode(self, wire: Tensor, numel: int) -> Tensor:
        return wire[: self.bytes(numel)].view(self.dtype).float()


@dataclass(frozen=True)
class Blocks:
    """Integers of 8 or 4 ``bits``, and an fp32 scale for each ``block`` of numbers: x is about q * scale.

    The scale is the block's largest magnitude over 127, or 7. So a number is off by half a scale at most. A block with
    an infinite number or a NaN is NaN.
    """

    bits: int
    block: int = 256

    def bytes(self, numel: int) -> int:
        return -(-numel // self.block) * 4 + -(-numel * self.bits // 8)

    def encode(self, values: Tensor) -> Tensor:
        blocks, largest = in_blocks(values.float(), self.block), 2 ** (self.bits - 1) - 1
        scales = blocks.abs().amax(1) / largest
        steps = blocks * scales.clamp(min=torch.finfo(torch.float32).tiny).reciprocal()[:, None]
        numbers = steps.round_().to(torch.int8).view(-1)[: values.numel()]
        return torch.cat([scales.view(torch.uint8), packed(numbers.view(torch.uint8), self.bits)])

    def decode(self, wire: Tensor, numel: int) -> Tensor:
        scales_end = -(-numel // self.block) * 4
        scales = floats(wire[:scales_end])
        numbers = unpacked(wire[scales_end : self.bytes(numel)].view(torch.int8), self.bits)[:numel]
        return in_blocks(numbers.float(), self.block).mul_(scales[:, None]).view(-1)[:numel]


# ---- a mean in two exchanges


def chunks_of(vector: Tensor, ranks: int) -> list[Tensor]:
    """A 1-D ``vector`` cut into a chunk for each rank, as collectives cut it (``chunk_bounds``)."""
    return [vector[start:stop] for start, stop in pairwise(chunk_bounds(vector.numel(), ranks).tolist())]


def encoded(format: Format, chunks: Sequence[Tensor]) -> Tensor:
    """A row of bytes for each of the 1-D ``chunks``, as long as the longest needs."""
    size = max(format.bytes(chunk.numel()) for chunk in chunks)
    rows = torch.zeros(len(chunks), size, dtype=torch.uint8, device=chunks[0].device)
    for row, chunk in zip(rows, chunks, strict=True):
        row[: format.bytes(chunk.numel())] = format.encode(chunk)
    return rows


def to_owners(rows: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Send row r to rank r. Returns the rows that this rank gets, one from each rank."""
    arrived = torch.empty_like(rows)
    all_to_all(arrived.view(-1), rows.view(-1), group=group)
    return arrived


def to_all(format: Format, chunks: Sequence[Tensor], group: dist.ProcessGroup) -> None:
    """Fill ``chunks``, of which this rank has its own, with those of all ranks.

    A rank's own becomes what the others get, so all have the same bits.
    """
    own = encoded(format, [chunks[group.rank()]])[0]
    size = max(format.bytes(chunk.numel()) for chunk in chunks)
    rows = all_rows(torch.nn.functional.pad(own, (0, size - own.numel())), group)
    for row, chunk in zip(rows, chunks, strict=True):
        chunk.copy_(format.decode(row, chunk.numel()))


def all_rows(row: Tensor, group: dist.ProcessGroup) -> Tensor:
    """The 1-D ``row`` of each rank, of the same size on all."""
    rows = row.new_empty(group.size(), row.numel())
    rows[group.rank()] = row
    all_gather(rows.view(-1), group=group)
    return rows


# ---- bits and bytes


def packed(numbers: Tensor, bits: int) -> Tensor:
    """1-D whole ``numbers`` as bytes, ``bits`` of each, the first in the lowest. ``bits`` is 1, 2, 4 or 8.

    >>> packed(torch.tensor([1, 0, 0, 1, 0, 0, 0, 0, 1]), bits=1).tolist()
    [9, 1]
    """
    if bits == 8:
        return numbers.to(torch.uint8)
    numbers = torch.nn.functional.pad(numbers.to(torch.uint8), (0, -numbers.numel() % (8 // bits)))
    numbers = numbers.view(-1, 8 // bits) & (2**bits - 1)
    wire = numbers[:, 0].clone()
    for place in range(1, 8 // bits):
        wire |= numbers[:, place] << place * bits
    return wire


def unpacked(wire: Tensor, bits: int) -> Tensor:
    """The numbers in 1-D bytes, with those that fill the last byte: from 0 in uint8, with a sign in int8.

    >>> unpacked(torch.tensor([9, 31], dtype=torch.uint8), bits=4).tolist()
    [9, 0, 15, 1]
    >>> unpacked(torch.tensor([9, 31], dtype=torch.int8), bits=4).tolist()
    [-7, 0, -1, 1]
    """
    if bits == 8:
        return wire
    lowest = range(0, 8, bits)  # the lowest bit of each number; to shift right keeps the sign
    return torch.stack([(wire << (8 - bits - low)) >> (8 - bits) for low in lowest], dim=1).view(-1)


def floats(wire: Tensor) -> Tensor:
    """The fp32 numbers in 1-D bytes, wherever these begin in memory."""
    return wire.clone().view(torch.float32)


def in_blocks(values: Tensor, block: int) -> Tensor:
    """1-D ``values`` as rows of ``block``, with zeros at the end."""
    missing = -values.numel() % block
    return (torch.nn.functional.pad(values, (0, missing)) if missing else values).view(-1, block)
