"""How sharded vectors travel: gradients are summed into shards, and parameters are gathered from shards.

Rank r of a group owns chunk r of a vector (``chunk_bounds``), unless one rank owns all of it.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.distributed as dist

from ringzero.collectives import ALGORITHMS, all_gather, broadcast, reduce, reduce_scatter
from ringzero.collectives.formats import chunks_of
from ringzero.collectives.run import needs_the_host
from ringzero.collectives.torchs import all_gather_single, reduce_scatter_single
from ringzero.record import wire

BACKEND = "backend"


class Transport(NamedTuple):
    """Two functions of 1-D vectors, which talk in ``group``, and a third one between such groups.

    ``reduce(gradient)``  sums over the ranks, and returns this rank's shard of the sum; ``gradient`` is overwritten
    ``gather(whole)``     fills ``whole``, in which this rank's shard is in its place, with the other ranks' shards
    ``across``            where there are several groups that do so: sums what ``reduce`` returned over them, in place
    ``in_node``           with it each node keeps shards of what was gathered, to gather there the next time
    """

    group: dist.ProcessGroup
    reduce: Callable[[torch.Tensor], torch.Tensor]
    gather: Callable[[torch.Tensor], object]
    across: Callable[[torch.Tensor], object] | None = None
    in_node: "Transport | None" = None

    def owned_by(self, owner: int | None) -> "Transport":
        """How a vector travels that rank ``owner`` has alone; None for one that all ranks share."""
        if owner is None:
            return self
        to_owner = partial(_reduce_to, owner, self.group)
        return self._replace(reduce=to_owner, gather=partial(broadcast, root=owner, group=self.group), in_node=None)


def transport_in(group: dist.ProcessGroup, device: torch.device, algorithm: str | None = None) -> Transport:
    """How vectors on ``device`` travel in ``group``: see ``ZeroModel``. ValueError for an unknown ``algorithm``."""
    if algorithm is None:  # what is fastest
        on_nccl = wire.goes_in_groups(group, device.type == "cuda") and not needs_the_host(device, group)
        algorithm = BACKEND if on_nccl else "ring"
    ours = [name for name in ALGORITHMS["reduce_scatter"] if name in ALGORITHMS["all_gather"]]
    if algorithm not in (*ours, BACKEND):
        raise ValueError(f"algorithm is {algorithm!r}; take one of {', '.join(map(repr, [*ours, BACKEND]))}")
    if algorithm == BACKEND:
        return Transport(group, partial(_backends_reduce, group), partial(_backends_gather, group))
    return Transport(
        group,
        partial(reduce_scatter, algorithm=algorithm, group=group),
        partial(all_gather, algorithm=algorithm, group=group),
    )


def _reduce_to(owner: int, group: dist.ProcessGroup, gradient: torch.Tensor) -> torch.Tensor:
    reduce(gradient, owner, algorithm="ring", group=group)
    return gradient if group.rank() == owner else gradient[:0]


# By the collectives of the group's backend. NCCL's need one kernel, where messages need one for each step.


def _backends_reduce(group: dist.ProcessGroup, gradient: torch.Tensor) -> torch.Tensor:
    shards = chunks_of(gradient, group.size())
    mine = shards[group.rank()]
    if gradient.numel() % len(shards):
        dist.reduce_scatter(mine, shards, group=group)
    else:
        reduce_scatter_single(mine, gradient, group=group)
    return mine


def _backends_gather(group: dist.ProcessGroup, whole: torch.Tensor) -> None:
    shards = chunks_of(whole, group.size())
    if whole.numel() % len(shards):  # gloo gathers equal shards only, and NCCL broadcasts others in turn, too
        for root, shard in enumerate(shards):
            dist.broadcast(shard, group_src=root, group=group)
    else:
        all_gather_single(whole, shards[group.rank()], group=group)
