"""How sharded vectors travel: gradients are summed into shards, and parameters are gathered from shards.

Rank r of a group owns chunk r of a vector (``chunk_bounds``).
"""

from abc import ABC, abstractmethod
from itertools import pairwise

import torch
import torch.distributed as dist

from ringzero.collectives import ALGORITHMS, all_gather, broadcast, reduce, reduce_scatter
from ringzero.collectives.run import needs_the_host
from ringzero.collectives.schedule import chunk_bounds
from ringzero.collectives.torchs import all_gather_single, reduce_scatter_single
from ringzero.data_parallel.executor import Job, queue_of
from ringzero.data_parallel.in_order import Wait
from ringzero.record import wire

BACKEND = "backend"


class Travel(ABC):
    """In ``group``. With ``in_node`` each node keeps shards of what was gathered, to gather there the next time."""

    group: dist.ProcessGroup
    in_node: "Travel | None" = None

    @abstractmethod
    def reduce(self, gradient: torch.Tensor) -> torch.Tensor:
        """Sum over the ranks. Returns this rank's shard of the sum; ``gradient`` is overwritten."""

    @abstractmethod
    def gather(self, whole: torch.Tensor) -> None:
        """Fill ``whole``, in which this rank's shard is in its place, with the other ranks' shards."""

    def for_owner(self, owner: int) -> "Travel":
        """The same for vectors that rank ``owner`` of the group has alone."""
        return OneOwner(owner, self.group)


class Ringzeros(Travel):
    """By the reduce-scatter and the all-gather of ringzero that have the name ``algorithm``."""

    def __init__(self, algorithm: str, group: dist.ProcessGroup):
        self.algorithm, self.group = algorithm, group

    def reduce(self, gradient: torch.Tensor) -> torch.Tensor:
        return reduce_scatter(gradient, algorithm=self.algorithm, group=self.group)

    def gather(self, whole: torch.Tensor) -> None:
        all_gather(whole, algorithm=self.algorithm, group=self.group)


class BackendsOwn(Travel):
    """By the collectives of the group's backend. NCCL's need one kernel, where messages need one for each step."""

    def __init__(self, group: dist.ProcessGroup):
        self.group = group

    def reduce(self, gradient: torch.Tensor) -> torch.Tensor:
        shards = self._shards(gradient)
        mine = shards[self.group.rank()]
        if gradient.numel() % len(shards):
            dist.reduce_scatter(mine, shards, group=self.group)
        else:
            reduce_scatter_single(mine, gradient, group=self.group)
        return mine

    def gather(self, whole: torch.Tensor) -> None:
        shards = self._shards(whole)
        if whole.numel() % len(shards):  # gloo gathers equal shards only, and NCCL broadcasts others in turn, too
            for root, shard in enumerate(shards):
                dist.broadcast(shard, group_src=root, group=self.group)
        else:
            all_gather_single(whole, shards[self.group.rank()], group=self.group)

    def _shards(self, vector: torch.Tensor) -> list[torch.Tensor]:
        return [
            vector[start:stop] for start, stop in pairwise(chunk_bounds(vector.numel(), self.group.size()).tolist())
        ]


class OneOwner(Travel):
    """Of vectors that rank ``owner`` has alone: gradients are reduced to it, and parameters are broadcast from it."""

    def __init__(self, owner: int, group: dist.ProcessGroup):
        self.owner, self.group = owner, group

    def reduce(self, gradient: torch.Tensor) -> torch.Tensor:
        reduce(gradient, self.owner, algorithm="ring", group=self.group)
        return gradient if self.group.rank() == self.owner else gradient[:0]

    def gather(self, whole: torch.Tensor) -> None:
        broadcast(whole, self.owner, group=self.group)


def start(travel: Travel, job: Job, device: torch.device, after: Job | None = None) -> Wait:
    """Run ``job``, which may ``reduce`` and ``gather``, beside the computation, after those of the group before it.

    ``after`` follows, once the memory that the job used may be freed.
    """
    return queue_of(travel.group, device).submit(job, after).result


def travel_of(group: dist.ProcessGroup, device: torch.device, algorithm: str | None = None) -> Travel:
    """How vectors on ``device`` travel in ``group``: see ``ZeroModel``. ValueError for an unknown ``algorithm``."""
    if algorithm is None:  # what is fastest
        on_nccl = wire.goes_in_groups(group, device.type == "cuda") and not needs_the_host(device, group)
        algorithm = BACKEND if on_nccl else "ring"
    ours = [name for name in ALGORITHMS["reduce_scatter"] if name in ALGORITHMS["all_gather"]]
    if algorithm == BACKEND:
        return BackendsOwn(group)
    if algorithm not in ours:
        raise ValueError(f"algorithm is {algorithm!r}; take one of {', '.join(map(repr, [*ours, BACKEND]))}")
    return Ringzeros(algorithm, group)
