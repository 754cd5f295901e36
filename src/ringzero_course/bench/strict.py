"""What it costs to run by NCCL's rules: the same programs on gloo and under ``strict``, in turns.

Programs are as small as those that a lab's checks run, and a launch of warm ranks is part of the time, as it is there.
"""

import time

from ringzero_course.bench import runner

WORLD_SIZE = 4
DEVICES = ("cpu", "strict")


def rows(iterations=15):
    """What NCCL's rules on the CPU cost beside gloo, in programs as small as those of a lab's checks.

    A row for each program: ours under strict, the peer on gloo; a ratio of 0.33 is three times as slow.
    """
    from ringzero import launch
    from ringzero.measure.turns import in_turns

    def once(what):
        name, device = what
        start = time.perf_counter()
        launch(PROGRAMS[name], world_size=WORLD_SIZE, device=device)
        return time.perf_counter() - start

    for name in runner.progress(PROGRAMS):
        seconds = in_turns([(name, device) for device in DEVICES], once, iterations, warm_up=1)
        yield runner.milliseconds(name, seconds[name, "strict"], seconds[name, "cpu"], "gloo", "time")


def ring_by_hand():
    """A student's ring all-reduce: 2 (N-1) rounds of grouped messages."""
    import torch
    import torch.distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    for size in (1, 5, 1000):
        chunks = list(torch.full((n * size,), float(rank)).chunk(n))
        received = torch.empty(size)
        for step in range(2 * (n - 1)):
            sent = (rank - step) % n
            messages = [
                dist.P2POp(dist.isend, chunks[sent], (rank + 1) % n),
                dist.P2POp(dist.irecv, received, (rank - 1) % n),
            ]
            for work in dist.batch_isend_irecv(messages):
                work.wait()
            target = chunks[sent - 1]
            target.copy_(target + received if step < n - 1 else received)


def collectives():
    """Each algorithm of the library's all-reduce, on three sizes."""
    import torch

    from ringzero import all_reduce
    from ringzero.collectives import ALGORITHMS

    for algorithm in ALGORITHMS["all_reduce"]:
        for size in (1, 7, 1000):
            all_reduce(torch.ones(size), algorithm=algorithm)


def training(stage):
    """A program that trains for five steps, in a stage of ZeRO; 0 is data parallelism."""

    def program():
        import torch

        from ringzero.data_parallel import DistributedDataParallel
        from ringzero.zero import STAGES

        model = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(6)))
        if stage:
            model = optimizer = STAGES[stage](model, torch.optim.AdamW, lr=0.1)
        else:
            model = DistributedDataParallel(model, bucket_cap_mb=0.01)
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        for _ in range(5):
            model(torch.ones(8, 32)).square().mean().backward()
            optimizer.step()
            model.zero_grad()

    return program


PROGRAMS = {
    "a ring by hand": ring_by_hand,
    "all all-reduces": collectives,
    "DDP, 5 steps": training(0),
    "ZeRO stage 1, 5 steps": training(1),
    "ZeRO stage 3, 5 steps": training(3),
}


command = runner.command(rows, iterations=(runner.COUNT, "Launches of each program on each."))
