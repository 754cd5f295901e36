"""Fewer bits on the wire: ZeRO++.

Wang et al., "ZeRO++: Extremely Efficient Collective Communication for Giant Model Training" (2023), has three parts:

| part | what                                                          | across nodes, in sizes M of the fp16 model |
|------|---------------------------------------------------------------|--------------------------------------------|
| qwZ  | weights are gathered as int8, in blocks with a scale each     | 0.5 instead of 1                           |
| hpZ  | later gathers are from a second shard, kept inside each node  | 0 instead of 1                             |
| qgZ  | gradients are exchanged as int4, inside nodes and then across | 0.25 instead of 1                          |

Masters stay exact: every gather quantises them anew, and errors of weights do not add up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Protocol

import torch
import torch.distributed as dist

from ringzero.collectives import all_gather, all_to_all
from ringzero.zero.transport import Flat, OfOwner, Transport, chunks
from ringzero.zero.two_level import NewGroup, levels


class Format(Protocol):
    """How numbers look on the wire."""

    def bytes(self, numel: int) -> int:
        """What ``numel`` numbers take."""

    def encode(self, values: torch.Tensor) -> torch.Tensor:
        """Of 1-D ``values``: their bytes, uint8."""

    def decode(self, wire: torch.Tensor, numel: int) -> torch.Tensor:
        """``numel`` numbers, fp32."""


@dataclass(frozen=True)
class Float:
    """Numbers rounded to a floating-point type of fewer bits."""

    dtype: torch.dtype

    def bytes(self, numel: int) -> int:
        return numel * self.dtype.itemsize

    def encode(self, values: torch.Tensor) -> torch.Tensor:
        return values.to(self.dtype).view(torch.uint8)

    def decode(self, wire: torch.Tensor, numel: int) -> torch.Tensor:
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

    def encode(self, values: torch.Tensor) -> torch.Tensor:
        blocks, largest = self._in_blocks(values.float()), 2 ** (self.bits - 1) - 1
        scales = blocks.abs().amax(1) / largest
        steps = blocks * scales.clamp(min=torch.finfo(torch.float32).tiny).reciprocal()[:, None]
        numbers = steps.round_().to(torch.int8).view(-1)[: values.numel()]
        if self.bits == 4:
            numbers = _padded(numbers, 2).view(-1, 2)
            numbers = (numbers[:, 0] & 15) | (numbers[:, 1] << 4)
        return torch.cat([scales.view(torch.uint8), numbers.view(torch.uint8)])

    def decode(self, wire: torch.Tensor, numel: int) -> torch.Tensor:
        scales_end = -(-numel // self.block) * 4
        scales = wire[:scales_end].clone().view(torch.float32)  # the clone begins where a float may
        numbers = wire[scales_end : self.bytes(numel)].view(torch.int8)
        if self.bits == 4:  # shifts of signed numbers keep the sign
            numbers = torch.stack([(numbers << 4) >> 4, numbers >> 4], dim=1).view(-1)[:numel]
        return self._in_blocks(numbers.float()).mul_(scales[:, None]).view(-1)[:numel]

    def _in_blocks(self, values: torch.Tensor) -> torch.Tensor:
        return _padded(values, self.block).view(-1, self.block)


def _padded(values: torch.Tensor, multiple: int) -> torch.Tensor:
    """With zeros at the end, if need be, so that the number of elements is a multiple."""
    missing = -values.numel() % multiple
    return torch.nn.functional.pad(values, (0, missing)) if missing else values


FORMATS: dict[str, Callable[[int], Format]] = {
    "bf16": lambda block: Float(torch.bfloat16),
    "int8": lambda block: Blocks(8, block),
    "int4": lambda block: Blocks(4, block),
}


@dataclass(frozen=True)
class ZeroPlusPlus:
    """The three parts of ZeRO++, each of which can be left out. For stage 3.

    ``weights``         "int8" (qwZ), "bf16", "int4", or None for the type of the parameters
    ``secondary``       hpZ: after the first gather since a step, each node has the parameters once more, sharded among
                        its ranks, and later gathers stay inside it
    ``gradients``       "int4" (qgZ), "int8", "bf16", or None for the type of the gradients. Sums are fp32
    ``ranks_per_node``  by default as many as the launcher started on a node
    ``block``           numbers that share a scale; the last block of a shard may be shorter

    ``ZeroPlusPlus("bf16", "bf16", secondary=False)`` is a lower precision on the wire, and nothing else. Raises
    ValueError for another format, and a block that is not even: two int4 share a byte.
    """

    weights: str | None = "int8"
    gradients: str | None = "int4"
    secondary: bool = True
    ranks_per_node: int | None = None
    block: int = 256
    for_all_stages: ClassVar = False

    def __post_init__(self) -> None:
        for what, given in (("weights", self.weights), ("gradients", self.gradients)):
            if given is not None and given not in FORMATS:
                raise ValueError(f"{what} is {given!r}; take one of {', '.join(map(repr, FORMATS))}, or None")
        if self.block < 2 or self.block % 2:
            raise ValueError(f"block is {self.block!r}; give an even number of elements: two int4 share a byte")

    def travel(
        self, group: dist.ProcessGroup, new_group: NewGroup, flat: Flat, reduces: bool = True, gathers: bool = True
    ) -> OfOwner:
        node, across = levels(group, self.ranks_per_node)
        weights, gradients = (
            None if name is None else FORMATS[name](self.block) for name in (self.weights, self.gradients)
        )
        exchanges = [new_group(node), new_group(across)] if gradients is not None and reduces else []
        in_node = flat(new_group(node), None) if self.secondary and gathers else None

        def of_owner(owner: int | None) -> Transport:
            travels = flat(group, owner)
            if owner is not None:
                return travels
            if gradients is not None:
                travels = travels._replace(reduce=partial(_reduce, gradients, group, exchanges))
            if weights is not None:
                travels = travels._replace(gather=partial(_gather, weights, group))
            return travels._replace(in_node=in_node)

        return of_owner


def _gather(weights: Format, group: dist.ProcessGroup, whole: torch.Tensor) -> None:
    ranks, rank = group.size(), group.rank()
    shards = chunks(whole, ranks)
    size = weights.bytes(max(shard.numel() for shard in shards))
    wire = torch.empty(ranks, size, dtype=torch.uint8, device=whole.device)
    mine = weights.encode(shards[rank])
    wire[rank, : mine.numel()] = mine
    all_gather(wire.view(-1), group=group)
    for shard, arrived in zip(shards, wire, strict=True):  # this rank's own, too: all ranks compute with the same
        shard.copy_(weights.decode(arrived, shard.numel()))


def _reduce(
    format: Format, group: dist.ProcessGroup, exchanges: list[dist.ProcessGroup], gradient: torch.Tensor
) -> torch.Tensor:
    """Exchange in one group of ``exchanges`` after the other."""
    parts = [chunk.float() for chunk in chunks(gradient, group.size())]
    for each in exchanges:  # in a node, what is for any rank of the same place goes to the neighbour there
        if each.size() > 1:
            parts = _exchange(format, parts, each)
    (shard,) = parts
    return shard.to(gradient.dtype)


def _exchange(format: Format, chunks: list[torch.Tensor], group: dist.ProcessGroup) -> list[torch.Tensor]:
    """Send every n-th chunk to a rank of the group, of n ranks. Returns the sums of what is for this one."""
    ranks, rank = group.size(), group.rank()
    parts = [torch.cat(chunks[place::ranks]) for place in range(ranks)]
    size = max(format.bytes(part.numel()) for part in parts)
    wire = torch.empty(ranks, size, dtype=torch.uint8, device=parts[0].device)
    for row, part in zip(wire, parts, strict=True):
        encoded = format.encode(part)
        row[: encoded.numel()] = encoded
    arrived = torch.empty_like(wire)
    all_to_all(arrived.view(-1), wire.view(-1), group=group)
    numel = parts[rank].numel()
    summed = sum(  # this rank's own part, which did not travel, is exact
        parts[rank] if sender == rank else format.decode(row, numel) for sender, row in enumerate(arrived)
    )
    assert isinstance(summed, torch.Tensor)
    return list(summed.split([chunk.numel() for chunk in chunks[rank::ranks]]))
