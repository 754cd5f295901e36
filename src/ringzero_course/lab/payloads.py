"""What a student's code gives to the other ranks, kept as copies, while other process groups and stores are closed.

A rank's record holds what it sent through the default process group, so what travels by another group is not counted.
Files, sockets and other processes stay open: a debug log, a cache or a data loader's workers are nobody's fault.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest import mock  # patch.object can also undo the override of an inherited method

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from ringzero.record.recording_group import TracedProcessGroup

# Methods of a process group, and which argument holds what this rank gives.
GIVEN = {
    **dict.fromkeys(("send", "allreduce", "allreduce_coalesced", "broadcast", "reduce"), 0),
    **dict.fromkeys(("allgather", "allgather_coalesced", "all_gather_single", "_allgather_base"), 1),
    **dict.fromkeys(("all_gather_single_coalesced", "allgather_into_tensor_coalesced", "gather", "scatter"), 1),
    **dict.fromkeys(("reduce_scatter", "reduce_scatter_single", "_reduce_scatter_base", "alltoall"), 1),
    **dict.fromkeys(("all_to_all_single", "alltoall_base"), 1),
}
GROUPS = ("_new_process_group_helper", "_get_default_store", "_get_process_group_store")  # all others call these
STORES = ("FileStore", "TCPStore", "HashStore", "ProcessGroupGloo")


@contextmanager
def payloads(note: Callable[[], None] | None = None) -> Iterator[list[torch.Tensor]]:
    """Inside, a list grows by a copy of each tensor that this rank hands to the default process group.

    ``note`` is called after each. Another process group and a store raise RuntimeError.
    """
    given: list[torch.Tensor] = []
    with ExitStack() as stack:
        for name, place in GIVEN.items():
            method = vars(TracedProcessGroup)[name]
            stack.enter_context(mock.patch.object(TracedProcessGroup, name, _keeping(method, place, given, note)))
        stack.enter_context(no_other_way())
        yield given


def _keeping(method: Callable, place: int, given: list, note: Callable | None) -> Callable:
    def kept(self: TracedProcessGroup, *args: Any, **options: Any) -> Any:
        for tensor in _tensors(args[place]):
            given.append(tensor.detach().clone())
            if note is not None:
                note()
        return method(self, *args, **options)

    return kept


def _tensors(tree):
    if isinstance(tree, torch.Tensor):
        yield tree
        return
    for item in tree or ():
        yield from _tensors(item)


@contextmanager
def no_other_way() -> Iterator[None]:
    """Inside, another process group and a store raise RuntimeError."""
    with ExitStack() as stack:
        for name in filter(partial(hasattr, distributed_c10d), GROUPS):
            stack.enter_context(mock.patch.object(distributed_c10d, name, _refuse))
        for name in filter(partial(hasattr, dist), STORES):
            stack.enter_context(mock.patch.object(getattr(dist, name), "__init__", _refuse))
        yield


def _refuse(*_, **__):
    raise RuntimeError("use the default process group: what travels by another group or a store is not counted")
