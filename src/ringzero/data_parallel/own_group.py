"""A process group for each model: its messages never meet those of another model, or of the program itself.

Two models in one loss find their gradients in an order that may differ between ranks. On one group their sums would
mix. A group costs sockets and threads, so one whose model is gone serves the next model of the same ranks.
"""

import gc
from weakref import WeakKeyDictionary, ref

import torch
import torch.distributed as dist

from ringzero.collectives.run import device_of


class OwnGroup:
    """A group and the model that has it. ``in_use`` says that messages may be on their way.

    ``passes`` counts backward passes of all models that have had it.
    """

    def __init__(self, group: dist.ProcessGroup, owner: object):
        self.group, self.owner, self.in_use, self.passes = group, ref(owner), False, 0

    @property
    def is_free(self) -> bool:
        return self.owner() is None and not self.in_use


Kind = tuple[tuple[int, ...], str, object]  # the ranks in the world, the backend, and the time-out
_made: WeakKeyDictionary[dist.ProcessGroup, dict[Kind, list[OwnGroup]]] = WeakKeyDictionary()  # of a world


def own_group(ranks_of: dist.ProcessGroup, owner: object) -> OwnGroup:
    """A group of the ranks and backend of ``ranks_of``, for ``owner`` alone. All ranks must ask for it together."""
    world = dist.group.WORLD
    assert world is not None
    made = _made.setdefault(world, {}).setdefault(_kind(ranks_of), [])
    free = _free_on_all_ranks(made, ranks_of)
    if not free and any(each.owner() is not owner for each in made):  # on every rank alike
        gc.collect()  # a model refers to itself, by the hooks on its parameters
        free = _free_on_all_ranks(made, ranks_of)
    if free:
        free[0].owner = ref(owner)
        return free[0]
    made.append(OwnGroup(_new(ranks_of), owner))
    return made[-1]


def _kind(ranks_of: dist.ProcessGroup) -> Kind:
    timeout = ranks_of._get_backend(device_of(ranks_of)).options._timeout
    return tuple(dist.get_process_group_ranks(ranks_of)), str(dist.get_backend_config(ranks_of)), timeout


def _free_on_all_ranks(made: list[OwnGroup], ranks_of: dist.ProcessGroup) -> list[OwnGroup]:
    """A rank may not have noticed yet that a model is gone."""
    if not made:
        return []
    free = torch.tensor([each.is_free for each in made], dtype=torch.uint8, device=device_of(ranks_of))
    dist.all_reduce(free, op=dist.ReduceOp.MIN, group=ranks_of)
    return [each for each, is_free in zip(made, free.tolist(), strict=True) if is_free]


def _new(ranks_of: dist.ProcessGroup) -> dist.ProcessGroup:
    return dist.new_group(
        dist.get_process_group_ranks(ranks_of),
        timeout=ranks_of._get_backend(device_of(ranks_of)).options._timeout,
        backend=str(dist.get_backend_config(ranks_of)),
        use_local_synchronization=True,
    )
