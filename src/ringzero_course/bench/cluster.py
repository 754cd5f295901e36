"""The emulated cluster beside what was asked of it, and what overlap is worth there.

Bandwidth: a quarter of a second of bytes from node to node. Overlap: a training step of two nodes, its gradients summed
one by one after the backward pass (naive), or in buckets as soon as each is there.
"""

import statistics

from ringzero_course.bench import networks, runner

STEPS, TRIES = 7, 5
NAIVE, OVERLAPPED, SHAPE = "naive", "DDP, buckets of 1 MiB", "12 equal layers"


def rows(rates=networks.RATES):
    """Bandwidth of the emulated cluster beside what was asked; a training step there, overlapped beside naive."""
    from ringzero.measure import training
    from ringzero.ranks.cluster import bytes_per_second

    for rate, cluster in networks.between_nodes(rates):
        asked = bytes_per_second(rate)
        size = int(asked * 0.25)
        seconds = max(statistics.median(each) for each in cluster.launch(transfers, size, TRIES).returns)
        mbit = size / seconds * 8e-6, asked * 8e-6
        yield runner.row(f"bandwidth at {rate}", "bandwidth", *mbit, "asked", "Mbit/s", mbit[0] / mbit[1])
        ways = (NAIVE, OVERLAPPED)
        taken = cluster.launch(training.measured, ways, training.SHAPES[SHAPE], STEPS, timeout=300).returns[0]
        yield runner.milliseconds(f"overlapped step at {rate}", taken[OVERLAPPED], taken[NAIVE], NAIVE)


def transfers(size, tries):
    """On each of two ranks: the seconds of ``size`` bytes from rank 0 to rank 1."""
    import torch
    import torch.distributed as dist

    from ringzero.measure.turns import times

    act = dist.recv if dist.get_rank() else dist.send
    return times(act, torch.zeros(size // 4), 1 - dist.get_rank(), tries=tries)


command = runner.command(rows, rates=(runner.rates, "Of the link between the nodes."))
