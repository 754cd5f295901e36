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
from typing import ClassVar

import torch
import torch.distributed as dist

from ringzero.collectives.formats import Blocks, Float, Format, chunks_of, encoded, to_all, to_owners
from ringzero.zero.travel import Travel
from ringzero.zero.two_level import Flat, NewGroup, levels

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
    ) -> Travel:
        node, across = levels(group, self.ranks_per_node)
        weights, gradients = (
            None if name is None else FORMATS[name](self.block) for name in (self.weights, self.gradients)
        )
        return Quantised(
            flat(group),
            weights,
            gradients,
            exchanges=[new_group(node), new_group(across)] if gradients is not None and reduces else [],
            in_node=flat(new_group(node)) if self.secondary and gathers else None,
        )


class Quantised(Travel):
    """Vectors travel as ``plain`` has it, their weights and gradients in formats of fewer bits, or None.

    Gradients are exchanged in one group of ``exchanges`` after the other. ``in_node`` gathers second shards.
    """

    def __init__(self, plain: Travel, weights: Format | None, gradients: Format | None,
                 exchanges: list[dist.ProcessGroup], in_node: Travel | None):  # fmt: skip
        self.plain, self.group, self.weights, self.gradients = plain, plain.group, weights, gradients
        self.exchanges, self.in_node = [group for group in exchanges if group.size() > 1], in_node

    def gather(self, whole: torch.Tensor) -> None:
        if self.weights is None:
            self.plain.gather(whole)
        else:
            to_all(self.weights, chunks_of(whole, self.group.size()), self.group)

    def reduce(self, gradient: torch.Tensor) -> torch.Tensor:
        if self.gradients is None:
            return self.plain.reduce(gradient)
        chunks = [chunk.float() for chunk in chunks_of(gradient, self.group.size())]
        for group in self.exchanges:  # in a node, what is for any rank of the same place goes to the neighbour there
            chunks = self._exchange(self.gradients, chunks, group)
        (shard,) = chunks
        return shard.to(gradient.dtype)

    def _exchange(self, format: Format, chunks: list[torch.Tensor], group: dist.ProcessGroup) -> list[torch.Tensor]:
        """Send every n-th chunk to a rank of the group, of n ranks. Returns the sums of what is for this one."""
        ranks, rank = group.size(), group.rank()
        parts = [torch.cat(chunks[place::ranks]) for place in range(ranks)]
        arrived = to_owners(encoded(format, parts), group)
        numel = parts[rank].numel()
        summed = sum(  # this rank's own part, which did not travel, is exact
            parts[rank] if sender == rank else format.decode(row, numel) for sender, row in enumerate(arrived)
        )
        assert isinstance(summed, torch.Tensor)
        return list(summed.split([chunk.numel() for chunk in chunks[rank::ranks]]))
