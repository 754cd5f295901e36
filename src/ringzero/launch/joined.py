"""``launch`` in a process that ``torchrun`` started: the script's own ranks, on one machine or many, run the function.

# train.py                         python train.py                     2 ranks here, as in a notebook
if __name__ == "__main__":         torchrun --nproc-per-node 4 train.py            4 ranks here
    launch(train)                  srun torchrun --nnodes 2 … train.py             the ranks of both machines
"""

import os
import tempfile
import time
from datetime import timedelta

from ringzero.launch import plain, records

ROUND_TRIPS = 10  # to compare two clocks; the fastest counts


def is_rank_of_torchrun():
    return "TORCHELASTIC_RUN_ID" in os.environ and "RANK" in os.environ


def run(fn, args, device, timeout, trace):
    """Call ``fn(*args)`` on this rank, as all others do: ``(returned, seconds, records)`` of all ranks, on every rank.

    Output is not collected: torchrun passes it on. An error in ``fn`` is raised here, and torchrun ends the job.
    """
    import torch.distributed as dist

    with tempfile.TemporaryDirectory(prefix="ringzero-") as directory:
        own_group = not dist.is_initialized()
        if own_group:
            _init_process_group(device, timeout, f"{directory}/trace" if trace else None)
        try:
            aside = dist.new_group(backend="gloo")  # for what is not the caller's: nothing of it is recorded
            ahead = clock_ahead(aside) if trace else 0.0
            start = time.monotonic()
            plain.dump(fn(*args), f"{directory}/result")
            seconds = time.monotonic() - start
            mine = (plain.load(f"{directory}/result"), seconds, _recorded(f"{directory}/trace", ahead))
            everyone = [None] * dist.get_world_size()
            dist.all_gather_object(everyone, mine, group=aside)
        finally:
            if own_group:
                dist.destroy_process_group()
    returned, seconds, recorded = zip(*everyone, strict=True)
    return list(returned), max(seconds), [record for of_rank in recorded for record in of_rank]


def _init_process_group(device, timeout, trace_path):
    import torch
    import torch.distributed as dist

    enough = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
    if device == "cuda" and not enough:
        raise ValueError(
            f'device="cuda" needs a GPU for each of {os.environ["LOCAL_WORLD_SIZE"]} ranks on this node and it has '
            f'{torch.cuda.device_count() or "none"}; start fewer with --nproc-per-node, or use device="cpu"'
        )
    backend = "nccl" if enough and device != "cpu" else "gloo"
    if backend == "nccl":
        gpu = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(gpu)
        torch.set_default_device(gpu)
    if trace_path:
        from ringzero.launch import trace

        backend = trace.register(backend, trace_path)
    dist.init_process_group(backend, timeout=timedelta(seconds=timeout))


def _recorded(path, ahead):
    """This rank's records by rank 0's clock."""
    rank = int(os.environ["RANK"])
    times = ("start", "wait", "end")
    return [
        {"rank": rank} | record | {name: record[name] and record[name] - ahead for name in times}
        for record in records.read(path)
    ]


def clock_ahead(group):
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
