"""Predicted beside measured: all-reduces by several algorithms on a cluster.

A prediction is the critical path of the schedule on a model of the cluster, because our ranks do not wait for a round
to end on all ranks. ``links.fit_links`` finds the model's four numbers with other programs than those predicted here.
Measured is the fastest of several tries, each as long as its slowest rank took.
"""

from collections.abc import Sequence
from functools import partial
from math import ceil
from typing import Any, NamedTuple

from ringzero.collectives import Schedule
from ringzero.collectives.algorithms import ALGORITHMS
from ringzero.collectives.algorithms import options as options_of
from ringzero.collectives.compose import segmented
from ringzero.collectives.messages import SEGMENT_BYTES
from ringzero.measure.links import Nodes
from ringzero.measure.turns import times
from ringzero.network import Topology, critical_path, price

NAMES = ("ring", "binomial", "hierarchical_scattered")
SIZES = (2**20, 2**22)  # bytes
PIECES = 4  # of the buffer, where an algorithm is pipelined
SECONDS = 2.0  # of tries for each algorithm and size


class Comparison(NamedTuple):
    """An all-reduce of ``size`` bytes by one algorithm; times in seconds. ``in_step``: if each round had a barrier."""

    algorithm: str
    size: int
    measured: float
    predicted: float
    in_step: float


def compare(
    cluster: Nodes,
    model: Topology,
    names: Sequence[str] = NAMES,
    sizes: Sequence[int] = SIZES,
    seconds: float = SECONDS,
) -> list[Comparison]:
    """Run each algorithm on each size on the cluster, and predict it on ``model``: by size, then algorithm."""
    plans, found = {name: _plan(name, model) for name in names}, []
    for size in sizes:
        predicted = {name: critical_path(schedule, size, model) for name, (schedule, _) in plans.items()}
        calls = [(name, its) for name, (_, its) in plans.items()]
        tries = max(5, ceil(seconds * len(names) / sum(predicted.values())))
        ranks = cluster.launch(_all_reduce, calls, size, tries, timeout=300).returns
        for (name, (schedule, _)), of_ranks in zip(plans.items(), zip(*ranks, strict=True), strict=True):
            measured = min(map(max, zip(*of_ranks, strict=True)))
            found.append(Comparison(name, size, measured, predicted[name], price(schedule, size, model).seconds))
    return found


def in_segments(schedule: Schedule, size: float) -> Schedule:
    """``schedule`` at its best on a buffer of ``size`` bytes, where a chunk of more than ``SEGMENT_BYTES`` is cut.

    The next round then begins with the first segment while the second is on its way. Over gloo that needs luck:
    a receiver that is sending on the same connection says too late that it is ready. So ``compare`` does not count on
    it.
    """
    return segmented(schedule, max(1, ceil(size / schedule.chunks / SEGMENT_BYTES)))


def _plan(name: str, model: Topology) -> tuple[Schedule, dict[str, Any]]:
    """The all-reduce by ``name`` as a schedule for the model, and the options that make the same one on ranks."""
    takes = options_of("all_reduce", name)
    its: dict[str, Any] = {"chunks": PIECES} if "chunks" in takes else {}
    if "shape" in takes and len(model.shape) == 2:
        its["shape"] = model.shape
    return ALGORITHMS["all_reduce"][name](model.world_size, **its), its


def _all_reduce(calls: Sequence[tuple[str, dict[str, Any]]], size: int, tries: int) -> list[list[float]]:
    """On each rank: for each of ``calls``, ``(algorithm, options)``, the seconds of every try, taken in turns."""
    import torch

    import ringzero

    x = torch.zeros(size // 4)
    all_reduces = [partial(ringzero.all_reduce, algorithm=name, **its) for name, its in calls]
    turns = [[times(all_reduce, x, tries=1)[0] for all_reduce in all_reduces] for _ in range(tries)]
    return [list(seconds) for seconds in zip(*turns, strict=True)]
