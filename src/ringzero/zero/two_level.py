"""Two levels of ranks: those of one node, which talk fast, and those of the same place in every node.

Parameters are sharded inside a node and replicated across nodes: HSDP, Zhao et al., "PyTorch FSDP", VLDB 16 (2023);
MiCS, Zhang et al., VLDB 16 (2022). Gathers stay inside a node. Of the gradients only a shard crosses between nodes, and
of several micro-batches only that of their sum: passes in ``no_sync`` are reduced inside a node alone.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist

from ringzero.collectives import all_reduce
from ringzero.zero.transport import Transport

NewGroup = Callable[[dist.ProcessGroup], dist.ProcessGroup]  # of the same ranks, for one model alone


class Travel(Protocol):
    """How vectors travel in a group: ``Hybrid`` and ``ZeroPlusPlus``."""

    for_all_stages: bool  # or for stage 3 alone

    def transport(self, group: dist.ProcessGroup, new_group: NewGroup, within: Callable[[dist.ProcessGroup], Transport],
                  reduces: bool, gathers: bool) -> Transport:  # fmt: skip
        """In ``group``: on groups that ``new_group`` makes, ``within`` which vectors travel as in stages without this.

        It need not be able to reduce or to gather where it is not asked to.
        """


class Levels(NamedTuple):
    """The groups of this rank: ``node`` has its neighbours, ``across`` the ranks of its place in all nodes."""

    node: dist.ProcessGroup
    across: dist.ProcessGroup


_levels: WeakKeyDictionary[dist.ProcessGroup, dict[tuple, Levels]] = WeakKeyDictionary()  # of a world


def levels(group: dist.ProcessGroup, ranks_per_node: int | None = None) -> Levels:
    """Nodes of ``ranks_per_node`` ranks that follow each other; by default as many as the launcher started on a node.

    All ranks must ask together. Raises ValueError for a number that does not divide the ranks.
    """
    size, rank = group.size(), group.rank()
    given = int(os.environ.get("LOCAL_WORLD_SIZE", size)) if ranks_per_node is None else ranks_per_node
    if not 1 <= given <= size or size % given:
        raise ValueError(f"ranks_per_node is {given}, and {size} ranks are not whole nodes of so many; give a divisor")
    world = dist.group.WORLD
    assert world is not None
    made = _levels.setdefault(world, {})
    wanted = given, tuple(dist.get_process_group_ranks(group)), str(dist.get_backend_config(group))
    if wanted not in made:
        first = rank - rank % given
        made[wanted] = Levels(
            _group_of(group, range(first, first + given)), _group_of(group, range(rank % given, size, given))
        )
    return made[wanted]


def _group_of(group: dist.ProcessGroup, ranks: range) -> dist.ProcessGroup:
    world = dist.get_process_group_ranks(group)
    made = dist.new_group(
        [world[rank] for rank in ranks], backend=str(dist.get_backend_config(group)), use_local_synchronization=True
    )
    assert isinstance(made, dist.ProcessGroup)  # this rank is one of them
    return made


@dataclass(frozen=True)
class Hybrid:
    """Shard inside nodes of ``ranks_per_node`` ranks and replicate across them; by default the launcher's nodes."""

    ranks_per_node: int | None = None
    for_all_stages: ClassVar = True

    def transport(self, group: dist.ProcessGroup, new_group: NewGroup, within: Callable[[dist.ProcessGroup], Transport],
                  reduces: bool, gathers: bool) -> Transport:  # fmt: skip
        node, across = levels(group, self.ranks_per_node)
        inside = within(new_group(node))
        return replicated(inside, new_group(across)) if reduces else inside


def replicated(inside: Transport, across: dist.ProcessGroup) -> Transport:
    """Vectors travel ``inside`` a group, and their reduced shards are summed ``across`` such groups."""

    def add_up(shard: torch.Tensor) -> None:
        if shard.numel():
            all_reduce(shard, algorithm="auto", group=across)

    return inside._replace(across=add_up) if across.size() > 1 else inside
