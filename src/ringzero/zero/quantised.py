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
from typing import ClassVar

import torch
import torch.distributed as dist

from ringzero.collectives.formats import Blocks, Float, Format, chunks_of, encoded, to_all, to_owners
from ringzero.zero.transport import Transport
from ringzero.zero.two_level import NewGroup, levels

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

    def transport(self, group: dist.ProcessGroup, new_group: NewGroup, within: Callable[[dist.ProcessGroup], Transport],
                  reduces: bool, gathers: bool) -> Transport:  # fmt: skip
        node, across = levels(group, self.ranks_per_node)
        weights, gradients = (
            None if name is None else FORMATS[name](self.block) for name in (self.weights, self.gradients)
        )
        travels = within(group)
        if gradients is not None and reduces:
            exchanges = [new_group(node), new_group(across)]
            travels = travels._replace(reduce=partial(_reduce, gradients, group, exchanges))
        if weights is not None:
            travels = travels._replace(gather=partial(_gather, weights, group, travels.gather))
        return travels._replace(in_node=within(new_group(node)) if self.secondary and gathers else None)


def _gather(
    weights: Format, group: dist.ProcessGroup, exactly: Callable[[torch.Tensor], object], whole: torch.Tensor
) -> None:
    if whole.is_floating_point():
        to_all(weights, chunks_of(whole, group.size()), group)
    else:  # frozen, as of a model that was quantised before
        exactly(whole)


def _reduce(
    format: Format, group: dist.ProcessGroup, exchanges: list[dist.ProcessGroup], gradient: torch.Tensor
) -> torch.Tensor:
    """Exchange in one group of ``exchanges`` after the other."""
    parts = [chunk.float() for chunk in chunks_of(gradient, group.size())]
    for each in exchanges:  # in a node, what is for any rank of the same place goes to the neighbour there
        if each.size() > 1:
            parts = _exchange(format, parts, each)
    (shard,) = parts
    return shard.to(gradient.dtype)


def _exchange(format: Format, chunks: list[torch.Tensor], group: dist.ProcessGroup) -> list[torch.Tensor]:
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
