"""How ranks learn that one of them caught an error of its backward pass and goes on, where they do not know of it.

That rank still owes the others gradients. It sends zeros, and NaN as the first number of what each rank gets of one
vector; but first it leaves word in the store by which process groups find each other. Whoever gets NaN there looks into
the store. So a pass costs no message more, and an honest NaN, as of float16, costs a look.
"""

import torch
import torch.distributed as dist

from ringzero.data_parallel.own_group import OwnGroup
from ringzero.zero.vector import ShardedVector


class Word:
    """Among the ranks of ``own.group``."""

    def __init__(self, own: OwnGroup):
        self._own, self._first = own, torch.empty(0)

    def before(self, vector: ShardedVector, failed: bool) -> None:
        """Called once in each pass, before ``vector`` leaves; every rank has a shard of it."""
        self._own.passes += 1
        if failed:
            assert vector.gradient is not None
            self._store().set(self._key(self._own.group.rank()), "failed")
            starts = [vector.layout.shard(rank).start for rank in range(vector.layout.ranks)]
            vector.gradient[starts] = torch.nan

    def arrived(self, shard: torch.Tensor) -> None:
        self._first = shard[:1].clone()

    def first(self) -> torch.Tensor:
        """The first number that came in this pass, 1-D, which is kept no longer."""
        first, self._first = self._first, torch.empty(0)
        return first

    def of_ranks(self) -> list[bool]:
        """Which ranks left word in this pass."""
        store = self._store()
        return [store.check([self._key(rank)]) for rank in range(self._own.group.size())]

    def _store(self) -> dist.Store:
        return dist.PrefixStore("ringzero failed", dist.distributed_c10d._get_default_store())

    def _key(self, rank: int) -> str:
        return f"{self._own.group.name()} {self._own.passes} {rank}"
