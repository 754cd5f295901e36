"""``launch`` in a process that ``torchrun`` started: the script's own ranks, on one machine or many, run the function.

# train.py                         python train.py                     2 ranks here, as in a notebook
if __name__ == "__main__":         torchrun --nproc-per-node 4 train.py            4 ranks here
    launch(train)                  srun torchrun --nnodes 2 … train.py             the ranks of both machines
"""

import os
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ringzero.processes import plain
from ringzero.ranks import devices
from ringzero.record import recorder
from ringzero.record.operation import Operation

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

ROUND_TRIPS = 10  # to compare two clocks; the fastest counts


def is_rank_of_torchrun() -> bool:
    """Whether torchrun started this process, as a rank of a script and not of a pool."""
    return "TORCHELASTIC_RUN_ID" in os.environ and "RANK" in os.environ


def run(
    fn: Callable[..., Any], args: tuple[Any, ...], device: str, timeout: float, trace: bool
) -> tuple[list[Any], float, list[Operation]]:
    """Call ``fn(*args)`` on this rank, as all others do: ``(returned, seconds, records)`` of all ranks, on every rank.

    Output is not collected: torchrun passes it on. An error in ``fn`` is raised here, and torchrun ends the job.
    """
    import torch
    import torch.distributed as dist

    with tempfile.TemporaryDirectory(prefix="ringzero-") as directory:
        own_group, default_device = not dist.is_initialized(), torch.get_default_device()
        if own_group:
            device = devices.resolve(device, int(os.environ["LOCAL_WORLD_SIZE"]))  # ranks of this node, and its GPUs
            records = trace or devices.is_strict(device)
            _init_process_group(device, timeout, f"{directory}/trace" if records else None)
        try:
            aside = dist.new_group(backend="gloo")  # for what is not the caller's: nothing of it is recorded
            ahead = clock_ahead(aside) if trace else 0.0
            start = time.monotonic()
            returned = fn(*args)
            devices.leave(device)
            plain.dump(returned, f"{directory}/result")
            seconds = time.monotonic() - start
            mine = (plain.load(f"{directory}/result"), seconds, _recorded(f"{directory}/trace", ahead) if trace else [])
            everyone: list[Any] = [None] * dist.get_world_size()
            dist.all_gather_object(everyone, mine, group=aside)
        finally:
            if own_group:
                dist.destroy_process_group()
                if torch.get_default_device() != default_device:
                    torch.set_default_device(default_device)  # the script goes on, on whatever it had
    results, took, recorded = zip(*everyone, strict=True)
    return list(results), max(took), [record for of_rank in recorded for record in of_rank]


def _init_process_group(device: str, timeout: float, trace_path: str | None) -> None:
    import torch.distributed as dist

    devices.enter(device, int(os.environ["LOCAL_RANK"]))
    backend = devices.backend(device)
    if trace_path:
        from ringzero.record import recording_group

        backend = recording_group.register(backend, trace_path, int(os.environ["RANK"]), devices.creator(device))
    dist.init_process_group(backend, timeout=timedelta(seconds=timeout))


def _recorded(path: str, ahead: float) -> list[Operation]:
    """This rank's records by rank 0's clock."""
    operations = recorder.read(path, int(os.environ["RANK"]))
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
