"""Muon over shards, three ways: a step between two emulated nodes beside the prediction, in turns on the same ranks.

One rank a node. A step is forward, backward and Muon. The prediction is what the forward and the backward pass take
with no communication, and ``costs.muon.muon_seconds`` with the rate of the link and of Newton-Schulz on this machine.
Which way is the fastest should come out the same.
"""

import statistics
import time

from ringzero_course.bench import results, steps
from ringzero_course.bench.steps import RATES

WIDTH, LAYERS = 384, 8  # square matrices: 1.2 million parameters
WAYS = ("owner", "gather", "all_to_all")
STEPS = 7


def rows(rates=RATES, count=STEPS, progress=lambda cases: cases):
    """For each rate and way: a row of step time beside the predicted."""
    import ringzero
    from ringzero.costs import muon
    from ringzero.ranks.cluster import bytes_per_second

    compute, flops = ringzero.launch(alone, count, world_size=1, device="cpu").returns[0]
    for rate in progress(rates):
        with ringzero.Cluster(nodes=2, ranks_per_node=1, inter_node=rate) as cluster:
            seconds = cluster.launch(step_seconds, count, timeout=600).returns[0]
        link, matrices = bytes_per_second(rate), [(WIDTH, WIDTH)] * LAYERS
        for way in WAYS:
            predicted = compute + muon.muon_seconds(way, matrices, 2, link, flops, update_bytes_per_element=2)
            measured = statistics.median(seconds[way])
            yield results.row(f"{way}, {rate}", "step time", measured * 1e3, predicted * 1e3, "predicted", "ms")


def _model(way, group=None):
    import torch

    from ringzero.zero import Muon, ZeroStage2

    torch.manual_seed(0)
    module = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))
    return ZeroStage2(module, Muon, lr=1e-3, exchange=way, bucket_cap_mb=WIDTH * WIDTH * 4 / 2**20, group=group)


def alone(count):
    """On one rank: seconds of a forward and a backward pass, and FLOP/s of Newton-Schulz."""
    import torch

    from ringzero.costs import muon
    from ringzero.zero.muon import orthogonal

    module, batch = _model("gather").module, torch.randn(16, WIDTH)
    passes, products = [], []
    for _ in range(2 + count):
        start = time.perf_counter()
        module(batch).square().mean().backward()
        passes.append(time.perf_counter() - start)
        start = time.perf_counter()
        orthogonal(torch.randn(WIDTH, WIDTH))
        products.append(time.perf_counter() - start)
    return statistics.median(passes), muon.newton_schulz_flops(WIDTH, WIDTH) / statistics.median(products)


def step_seconds(count):
    """On each rank: ``{way: seconds of each step}``, of the slowest rank."""
    import torch
    import torch.distributed as dist

    group = dist.new_group(backend="gloo")

    def trainer(way):
        model, batch = _model(way, group), torch.randn(16, WIDTH)

        def step():
            model(batch).square().mean().backward()
            model.step()
            model.zero_grad()

        return step

    return steps.seconds_in_turns({way: trainer(way) for way in WAYS}, count, group, peers=())


HELP = "Muon by owners, by gathering and by all-to-all between two emulated nodes, beside the prediction."
command = steps.command_between_nodes("muon", HELP, rows, STEPS)
