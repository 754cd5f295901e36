"""Predicted beside measured: all-reduces by several algorithms on an emulated cluster.

A prediction is the critical path of the schedule on a model of the cluster, since our ranks wait for no round to end.
``machine`` finds the model's four numbers with other programs than those predicted: a ring inside each node, one
message to and fro between two nodes. Measured is the least disturbed of several tries, its slowest rank.
"""

import time
from math import ceil

import click

from ringzero.bench import options
from ringzero.collectives.algorithms import ALGORITHMS
from ringzero.collectives.algorithms import options as options_of
from ringzero.collectives.ring import ring_all_reduce
from ringzero.costs.alpha_beta import fit_alpha_beta
from ringzero.network import critical_path, emulated_cluster, laptop, price

NAMES = ("ring", "binomial", "hierarchical_scattered")
RATES, SIZES = ("200mbit", "1gbit"), (2**20, 2**22)
PROBES = (2**12, 2**16, 2**20, 2**22)  # bytes
PIECES = 4  # of the buffer, where an algorithm is pipelined
SECONDS = 2.0  # of tries for each algorithm and size


def machine(cluster, tries=9):
    """A ``ringzero.Cluster``, or one node with all the ranks, as a ``Topology``.

    Inside a node alpha and bandwidth are fitted to a ring all-reduce of its ranks,
    on all nodes at once: they share the cores. Between nodes alpha is the smallest
    message's time. The bandwidth comes from the two largest: after a pause a link
    lets the first millisecond's bytes through at once, whatever the message.
    """
    ranks = cluster.ranks_per_node
    found = cluster.launch(_probe, ranks, PROBES, tries, timeout=120).returns
    inside, between = map(_slowest, zip(*found, strict=True))
    counts = price(ring_all_reduce(ranks), 0, laptop(ranks, 1, 1)).coefficients
    alpha, beta = fit_alpha_beta(counts, PROBES, inside)
    alpha = max(alpha, 0.0)
    if cluster.nodes == 1:
        return laptop(ranks, alpha, 1 / beta)
    bandwidth = (PROBES[-1] - PROBES[-2]) / (between[-1] - between[-2])
    link = {"inter_node_bandwidth": bandwidth, "inter_node_alpha": between[0]}
    return emulated_cluster(cluster.nodes, ranks, **link, alpha=alpha, bandwidth=1 / beta)


def _slowest(ranks):
    """Of the seconds that each rank found for each size, the largest."""
    return [max(seconds) for seconds in zip(*ranks, strict=True)]


def compare(cluster, model, names=NAMES, sizes=SIZES, seconds=SECONDS):
    """A row for each size and algorithm: seconds ``measured`` and ``predicted``; ``in_step`` if rounds had barriers."""
    plans, found = {name: _plan(name, model) for name in names}, []
    for size in sizes:
        predicted = {name: critical_path(schedule, size, model) for name, (schedule, _) in plans.items()}
        calls = [(name, its) for name, (_, its) in plans.items()]
        tries = max(5, ceil(seconds * len(names) / sum(predicted.values())))
        ranks = cluster.launch(_all_reduce, calls, size, tries, timeout=300).returns
        for (name, (schedule, _)), times in zip(plans.items(), zip(*ranks, strict=True), strict=True):
            found.append(
                {
                    "algorithm": name,
                    "size": size,
                    "measured": min(map(max, zip(*times, strict=True))),
                    "predicted": predicted[name],
                    "in_step": price(schedule, size, model).seconds,
                }
            )
    return found


def rows(rates=RATES, names=NAMES, sizes=SIZES, seconds=SECONDS, progress=lambda rates: rates):
    """For each rate, size and algorithm a row of seconds, and one of how many times faster than the first it is."""
    from ringzero.launch.cluster import Cluster

    made = []
    for rate in progress(rates):
        with Cluster(nodes=2, ranks_per_node=2, inter_node=rate) as cluster:
            found = compare(cluster, machine(cluster), names, sizes, seconds)
        flat = {row["size"]: row for row in found if row["algorithm"] == names[0]}
        for row in found:
            name = f"{row['algorithm']} all_reduce, {row['size']} bytes, {rate}"
            made.append(_row(name, "time", row["measured"], row["predicted"], "s"))
            if row["algorithm"] != names[0]:
                faster = (flat[row["size"]][how] / row[how] for how in ("measured", "predicted"))
                made.append(_row(name, f"{names[0]}'s time / its own", *faster, "times"))
    return made


def _row(name, metric, measured, predicted, unit):
    ratio = predicted / measured if unit == "s" else measured / predicted
    return {
        **{"name": name, "metric": metric, "ours": measured, "peer": predicted},
        **{"peer_name": "predicted", "ratio": ratio, "unit": unit},
    }


def _plan(name, model):
    """The all-reduce by ``name`` as a schedule for the model, and the options that make the same on ranks."""
    takes = options_of("all_reduce", name)
    its = {"chunks": PIECES} if "chunks" in takes else {}
    if "shape" in takes and len(model.shape) == 2:
        its["shape"] = model.shape
    return ALGORITHMS["all_reduce"][name](model.world_size, **its), its


def _probe(ranks_per_node, sizes, tries):
    """On each rank: seconds of an all-reduce inside its node, and of a message from node 0 to node 1, for each size."""
    import torch
    import torch.distributed as dist

    import ringzero

    rank, world_size = dist.get_rank(), dist.get_world_size()
    firsts = range(0, world_size, ranks_per_node)
    node = [dist.new_group(list(range(first, first + ranks_per_node))) for first in firsts][rank // ranks_per_node]

    def to_and_fro(x):
        if rank == 0 and ranks_per_node < world_size:
            dist.send(x, ranks_per_node)
            dist.recv(x, ranks_per_node)
        elif rank == ranks_per_node:
            dist.recv(x, 0)
            dist.send(x, 0)

    tensors = [torch.ones(size // 4) for size in sizes]
    inside = [min(_times(lambda x=x: ringzero.all_reduce(x, group=node), 5 * tries)) for x in tensors]  # milliseconds
    between = [min(_times(lambda x=x: to_and_fro(x), tries)) / 2 for x in tensors]
    return inside, between


def _all_reduce(calls, size, tries):
    """On each rank: for each of ``calls``, ``(algorithm, options)``, the seconds of every try, taken in turns."""
    import torch

    import ringzero

    x = torch.zeros(size // 4)
    turns = [
        [_times(lambda name=name, its=its: ringzero.all_reduce(x, algorithm=name, **its), 1)[0] for name, its in calls]
        for _ in range(tries)
    ]
    return [list(times) for times in zip(*turns, strict=True)]


def _times(call, tries):
    import torch.distributed as dist

    times = []
    for _ in range(tries):
        dist.barrier()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


@click.command("prediction")
@click.option("--rates", default=",".join(RATES), show_default=True, help="Of the link between the nodes.")
@click.option("--algorithms", default=",".join(NAMES), show_default=True, help="Of all-reduce.")
@click.option("--sizes", default="1M,4M", show_default=True, callback=options.sizes, help="Of the buffer.")
@click.option("--seconds", default=SECONDS, show_default=True, help="Of tries for each algorithm and size.")
@options.json_option
def command(rates, algorithms, sizes, seconds, json_file):
    """All-reduces on two emulated nodes with two ranks each: seconds predicted and measured."""
    from tqdm import tqdm

    from ringzero.launch.cluster import ClusterUnavailable

    names = algorithms.split(",")
    if unknown := [name for name in names if name not in ALGORITHMS["all_reduce"]]:
        raise click.BadParameter(f"{', '.join(unknown)}: all_reduce has {', '.join(ALGORITHMS['all_reduce'])}")
    try:
        made = rows(rates.split(","), names, sizes, seconds, progress=tqdm)
    except (ClusterUnavailable, ValueError) as error:
        raise click.ClickException(str(error)) from None
    for row in made:
        click.echo(
            f"{row['name']:<56} {row['metric']:<22} measured {row['ours']:.4f} {row['unit']}, "
            f"predicted {row['peer']:.4f}: {row['ratio']:.3f}"
        )
    options.write(made, json_file)
