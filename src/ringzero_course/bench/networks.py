"""The networks that training steps are measured on: ranks of this machine, and emulated nodes with a slow link."""

import functools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

from ringzero_course.bench import runner

RATES = ("200mbit", "1gbit")
BETWEEN_NODES = {"rates": (runner.rates, "Between the nodes."), "steps": (runner.COUNT, "Of each that count.")}


def of_models(models: Iterable[str]) -> dict[str, tuple[Any, str]]:
    """Options of a benchmark of training steps of ``models``."""
    return {
        "ranks": (runner.ranks, "On this machine."),
        "rates": (runner.rates_or_none, 'Between 2 nodes; "none" for no nodes.'),
        "models": (runner.names(models), "Some of them."),
        "steps": (runner.COUNT, "Of each that count."),
    }


def on_networks(ranks: Sequence[int], rates: Sequence[str], models: Sequence[str]) -> Iterator[tuple]:
    """``(case, model, ranks, launch)`` for each model on so many ranks of this machine, and between two nodes.

    Raises ClusterUnavailable where nodes cannot be emulated.
    """
    import ringzero

    networks = [*((n, None) for n in ranks), *((2, rate) for rate in rates)]
    for (n, rate), model in runner.progress([(network, model) for network in networks for model in models]):
        emulated = ringzero.Cluster(nodes=n, ranks_per_node=1, inter_node=rate) if rate else nullcontext()
        with emulated as cluster:
            launch = cluster.launch if cluster else functools.partial(ringzero.launch, world_size=n, device="cpu")
            where = f"2 nodes at {rate}" if rate else f"{n} ranks"
            yield f"{model}, {where}", model, n, functools.partial(launch, timeout=600)


def between_nodes(rates: Sequence[str], nodes: int = 2, ranks_per_node: int = 1) -> Iterator[tuple]:
    """``(rate, cluster)`` for each rate of the link between emulated nodes. Raises what ``Cluster`` raises."""
    import ringzero

    for rate in runner.progress(rates):
        with ringzero.Cluster(nodes=nodes, ranks_per_node=ranks_per_node, inter_node=rate) as cluster:
            yield rate, cluster
