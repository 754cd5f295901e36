"""Muon over shards, three ways: a step between two emulated nodes beside the prediction, in turns on the same ranks.

One rank a node. A step is forward, backward and Muon. The prediction is what the forward and the backward pass take
with no communication, and ``costs.muon.muon_seconds`` with the rate of the link and of Newton-Schulz on this machine.
Which way is the fastest should come out the same.
"""

import statistics

from ringzero_course.bench import networks, runner, trainers

WIDTH, LAYERS = 384, 8  # square matrices: 1.2 million parameters
WAYS = ("owner", "gather", "all_to_all")


def rows(rates=networks.RATES, steps=7):
    """Muon by owners, by gathering and by all-to-all between two emulated nodes, beside the prediction."""
    import ringzero
    from ringzero.costs import muon
    from ringzero.ranks.cluster import bytes_per_second

    alone = ringzero.launch(alone_seconds, steps, world_size=1, device="cpu").returns[0]
    compute, product = (statistics.median(alone[name]) for name in ("pass", "product"))
    flops, matrices = muon.newton_schulz_flops(WIDTH, WIDTH) / product, [(WIDTH, WIDTH)] * LAYERS
    for rate, cluster in networks.between_nodes(rates):
        seconds = cluster.launch(step_seconds, steps, timeout=600).returns[0]
        for way in WAYS:
            link = bytes_per_second(rate)
            predicted = compute + muon.muon_seconds(way, matrices, 2, link, flops, update_bytes_per_element=2)
            measured = statistics.median(seconds[way])
            yield runner.row(f"{way}, {rate}", "step time", measured * 1e3, predicted * 1e3, "predicted", "ms")


def _model(way, group=None):
    from ringzero.zero import Muon, ZeroStage2

    cap = WIDTH * WIDTH * 4 / 2**20
    return ZeroStage2(trainers.stack(WIDTH, LAYERS), Muon, lr=1e-3, exchange=way, bucket_cap_mb=cap, group=group)


def alone_seconds(steps):
    """On one rank: seconds of a forward and a backward pass, and of Newton-Schulz on a matrix."""
    import torch

    from ringzero.zero.muon import orthogonal

    module, batch, matrix = trainers.stack(WIDTH, LAYERS), torch.randn(16, WIDTH), torch.randn(WIDTH, WIDTH)
    acts = {"pass": lambda: module(batch).square().mean().backward(), "product": lambda: orthogonal(matrix)}
    return trainers.seconds_in_turns(acts, steps, None)


def step_seconds(steps):
    """On each rank: ``{way: seconds of each step}``, of the slowest rank."""
    import torch
    import torch.distributed as dist

    group, batch = dist.new_group(backend="gloo"), torch.randn(16, WIDTH)
    made = {way: trainers.step_of(_model(way, group), batch) for way in WAYS}
    return trainers.seconds_in_turns(made, steps, group)


command = runner.command(rows, **networks.BETWEEN_NODES)
