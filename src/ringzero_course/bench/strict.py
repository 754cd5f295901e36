"""What it costs to run by NCCL's rules: the same programs on gloo and under ``strict``, in turns.

Programs are as small as those that a lab's checks run, and a launch of warm ranks is part of the time, as it is there.
"""

import statistics
import time

import click

from ringzero_course.bench import options, results

WORLD_SIZE, ITERATIONS = 4, 15
DEVICES = ("cpu", "strict")


def rows(iterations=ITERATIONS, progress=lambda turns: turns):
    """A row for each program: ``ours`` under strict, ``peer`` on gloo, in s; a ratio of 0.33 is three times as slow."""
    from ringzero import launch

    seconds = {(name, device): [] for name in PROGRAMS for device in DEVICES}
    for turn in progress(range(-1, iterations)):  # the first one warms ranks up
        for name, program in PROGRAMS.items():
            for device in DEVICES if turn % 2 else reversed(DEVICES):
                start = time.perf_counter()
                launch(program, world_size=WORLD_SIZE, device=device)
                if turn >= 0:
                    seconds[name, device].append(time.perf_counter() - start)
    return [
        results.row(name, "time", *(statistics.median(seconds[name, d]) for d in reversed(DEVICES)), "gloo", "s")
        for name in PROGRAMS
    ]


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


def data_parallel():
    _train(lambda module: _stepped(_ddp(module)))


def zero(stage):
    def program():
        import torch

        from ringzero.zero import STAGES

        _train(lambda module: STAGES[stage](module, torch.optim.AdamW, lr=0.1))

    return program


PROGRAMS = {
    "a ring by hand": ring_by_hand,
    "all all-reduces": collectives,
    "DDP, 5 steps": data_parallel,
    "ZeRO stage 1, 5 steps": zero(1),
    "ZeRO stage 3, 5 steps": zero(3),
}


def _ddp(module):
    from ringzero.data_parallel import DistributedDataParallel

    return DistributedDataParallel(module, bucket_cap_mb=0.01)


def _stepped(model):
    import torch

    model.step = torch.optim.AdamW(model.parameters(), lr=0.1).step
    return model


def _train(wrap):
    import torch

    model = wrap(torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(6))))
    for _ in range(5):
        model(torch.ones(8, 32)).square().mean().backward()
        model.step()
        model.zero_grad()


@click.command("strict")
@click.option("--iterations", default=ITERATIONS, show_default=True, help="Launches of each program on each.")
@options.json_option
def command(iterations, json_file):
    """What NCCL's rules on the CPU cost beside gloo, in programs as small as those of a lab's checks."""
    made = rows(iterations, progress=options.progress)
    for row in made:
        click.echo(
            f"{row['name']:<24} {row['ours']:.3f} s strict, {row['peer']:.3f} s gloo: {1 / row['ratio']:.2f} times"
        )
    results.write(made, json_file)
