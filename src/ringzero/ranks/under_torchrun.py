"""``launch`` in a process that ``torchrun`` started: the script's own ranks, on one machine or many, run the function.

# train.py                         python train.py                     2 ranks here, as in a notebook
if __name__ == "__main__":         torchrun --nproc-per-node 4 train.py            4 ranks here
    launch(train)                  srun torchrun --nnodes 2 … train.py             the ranks of both machines
"""

import functools
import gc
import itertools
import os
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ringzero.ranks import devices, plain_data
from ringzero.record import recorder, trace_file
from ringzero.record.operation import Operation

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup, Store

_launches = itertools.count()  # of this script that made a process group; the same number on every rank
_asides: "WeakKeyDictionary[ProcessGroup, ProcessGroup]" = WeakKeyDictionary()
ROUND_TRIPS = 10  # to compare two clocks; the fastest counts


def is_rank_of_torchrun() -> bool:
    """Whether torchrun started this process, as a rank of a script and not of a pool."""
    return "TORCHELASTIC_RUN_ID" in os.environ and "RANK" in os.environ


def run(
    fn: Callable[..., Any], args: tuple[Any, ...], device: str, timeout: float, trace: bool
) -> tuple[list[Any], float, list[Operation]]:
    """Call ``fn(*args)`` on this rank, as all others do: ``(returned, seconds, records)`` of all ranks, on every rank.

    Output is not collected: torchrun passes it on. An error in ``fn`` is raised here, and torchrun ends the job.

    Raises ValueError for what a process group that the script made itself cannot do: record, or keep NCCL's rules.
    """
    import torch
    import torch.distributed as dist

    if dist.is_initialized() and (trace or devices.is_strict(device)):
        asked = "trace=True" if trace else f'device="{device}"'
        raise ValueError(
            f"{asked} needs a process group that launch makes, and this script has called init_process_group; call "
            "launch before that, or destroy_process_group() first"
        )
    with tempfile.TemporaryDirectory(prefix="ringzero-") as directory:
        own_group, default_device = not dist.is_initialized(), torch.get_default_device()
        if own_group:
            device = devices.resolve(device, int(os.environ["LOCAL_WORLD_SIZE"]))  # ranks of this node, and its GPUs
            records = trace or devices.is_strict(device)
            _init_process_group(device, timeout, f"{directory}/trace" if records else None)
        try:
            aside = _aside(dist.group.WORLD)
            ahead = clock_ahead(aside) if trace else 0.0
            start = time.monotonic()
            returned = fn(*args)
            devices.leave(device)
            plain_data.dump(returned, f"{directory}/result")
            seconds = time.monotonic() - start
            recorded = _recorded(f"{directory}/trace", ahead) if trace else []
            mine = plain_data.load(f"{directory}/result"), seconds, recorded
            everyone: list[Any] = [None] * dist.get_world_size()
            dist.all_gather_object(everyone, mine, group=aside)
        finally:
            if own_group:
                dist.destroy_process_group()
                recorder.stop()
                del aside
                gc.collect()  # a group that records is in a cycle, and its connections are open until it goes
                if torch.get_default_device() != default_device:
                    torch.set_default_device(default_device)  # the script goes on, on whatever it had
    results, took, traces = zip(*everyone, strict=True)
    return list(results), max(took), [record for of_rank in traces for record in of_rank]


def _init_process_group(device: str, timeout: float, trace_path: str | None) -> None:
    import torch.distributed as dist

    devices.enter(device, int(os.environ["LOCAL_RANK"]))
    backend = devices.backend(device)
    if trace_path:
        from ringzero.record import recording_group

        backend = recording_group.register(backend, trace_path, int(os.environ["RANK"]), devices.creator(device))
    # On a part of torchrun's store for this launch alone: in what an earlier group left there, ranks would look for
    # connections that are closed.
    store = dist.PrefixStore(f"ringzero/{next(_launches)}", _store())
    store.set_timeout(timedelta(seconds=timeout))
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=timedelta(seconds=timeout))


@functools.cache
def _store() -> "Store":
    """The store that torchrun's ranks share, connected to once."""
    from torch.distributed import rendezvous

    store, _, _ = next(iter(rendezvous("env://")))
    return store


def _aside(world: Any) -> "ProcessGroup":
    """A group for what is not the caller's, so that nothing of it is recorded; one for each default group."""
    import torch.distributed as dist

    if world not in _asides:
        _asides[world] = dist.new_group(backend="gloo")
    return _asides[world]


def _recorded(path: str, ahead: float) -> list[Operation]:
    """This rank's records by rank 0's clock."""
    operations = trace_file.read(path, int(os.environ["RANK"]))
    return [
        op._replace(start=op.start - ahead, wait=op.wait and op.wait - ahead, end=op.end and op.end - ahead)
        for op in operations
    ]


def clock_ahead(group: "ProcessGroup") -> float:
    """Seconds that this rank's clock is ahead of rank 0's, to about half a round trip.

    Each rank in turn asks rank 0 for the time; the answer was given halfway between the question and its arrival
    (Cristian, "Probabilistic clock synchronization", 1989). Of several questions the one answered fastest counts.
    """
    import torch
    import torch.distributed as dist

    rank, answer = group.rank(), torch.zeros(1, dtype=torch.float64, device="cpu")
    trips = [(0.0, 0.0)] if rank == 0 else []
    for peer in range(1, group.size()):
        for _ in range(ROUND_TRIPS):
            if rank == 0:
                dist.recv(answer, group_src=peer, group=group)
                answer[0] = time.time()
                dist.send(answer, group_dst=peer, group=group)
            elif rank == peer:
                asked = time.time()
                dist.send(answer, group_dst=0, group=group)
                dist.recv(answer, group_src=0, group=group)
                heard = time.time()
                trips.append((heard - asked, (asked + heard) / 2 - answer.item()))
    return min(trips)[1]
