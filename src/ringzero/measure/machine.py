"""This machine as a ``steps.Machine``: measured on all ranks at once, because they share its cores and its memory."""

from collections.abc import Sequence
from functools import partial
from statistics import mean
from typing import NamedTuple

from ringzero import launch
from ringzero.measure.links import Nodes
from ringzero.measure.rates import COLLECTIVES, Rates, rates
from ringzero.steps.machine import Line, Machine

SHAPES = tuple((tokens, width, width) for width in (256, 512, 1024) for tokens in (32, 128, 512))
SIZES = (2**12, 2**16, 2**18, 2**20, 2**22, 2**24)  # bytes
TRIES = 7
QUIET = 0.25  # the spread of the same work that is told from a busy machine's


class Measured(NamedTuple):
    """``spread``: the slower quarter of equal work over the faster one, minus 1. ``reference``: seconds of the work
    that tells how fast the machine is at another time (``rates.reference``)."""

    machine: Machine
    spread: float
    reference: float

    def now(self, reference: float) -> Machine:
        """The machine when the reference takes so long."""
        return self.machine.faster(self.reference / reference)


class OneNode:
    """Ranks on one node, where a cluster is asked for."""

    nodes = 1

    def __init__(self, ranks: int):
        self.ranks_per_node = ranks
        self.launch = partial(launch, world_size=ranks)


def measure(cluster: Nodes, shapes: Sequence[tuple[int, int, int]] = SHAPES, sizes: Sequence[int] = SIZES,
            tries: int = TRIES) -> Measured:  # fmt: skip
    """Of ``cluster``: linear layers of ``shapes``, (tokens, inputs, outputs), and collectives of ``sizes`` bytes."""
    of_ranks: list[Rates] = cluster.launch(rates, shapes, sizes, tries, timeout=600).returns
    each = [Rates(*returned) for returned in of_ranks]
    products = tuple(_slowest(rows) for rows in zip(*(rank.products for rank in each), strict=True))
    points = {name: _slowest_of([rank.collectives[name] for rank in each]) for name in COLLECTIVES}
    beside = {name: _beside([rank.beside[name] for rank in each]) for name in COLLECTIVES}
    groups = ("all", _only_group(cluster))
    largest = max(products, key=lambda row: row[0] * row[1] * row[2])
    adam = max(rank.adam for rank in each)
    found = Machine(
        f"{cluster.nodes} x {cluster.ranks_per_node} ranks of this machine",
        cluster.nodes,
        cluster.ranks_per_node,
        flops=(largest[3] + largest[4]) / 2,
        memory_bandwidth=1 / max(rank.moved for rank in each),
        collectives={(name, group): (_line(points[name]),) for name in COLLECTIVES for group in groups},
        measured={(name, group): points[name] for name in COLLECTIVES for group in groups},
        message={},
        copies=1 / (2 * max(rank.moved for rank in each)),  # within one memory: read and written
        adam=adam,
        host_adam=adam,
        products=products,
        hooks=max(rank.hooks for rank in each),
        meeting=mean(rank.meeting for rank in each),
        beside={(name, group): beside[name] for name in COLLECTIVES for group in groups},
    )
    return Measured(found, max(rank.spread for rank in each), max(rank.reference for rank in each))


def _only_group(cluster: Nodes) -> str:
    return "node" if cluster.nodes == 1 else "nodes"


def _slowest(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Of what each rank measured for a shape: the shape, and the FLOP/s of the slowest, forward and backward."""
    tokens, inputs, outputs = rows[0][:3]
    forward, backward = (max(row[way] for row in rows) for way in (3, 4))
    flops = 2 * tokens * inputs * outputs
    return tokens, inputs, outputs, flops / forward, 2 * flops / backward


def _slowest_of(of_ranks: Sequence[Sequence[tuple[float, ...]]]) -> tuple[tuple[float, ...], ...]:
    """``((bytes, seconds, ...), ...)``, each as long as the slowest rank took."""
    return tuple(tuple(map(max, zip(*rows, strict=True))) for rows in zip(*of_ranks, strict=True))


def _beside(of_ranks: Sequence[Sequence[tuple[float, ...]]]) -> tuple[tuple[float, ...], ...]:
    """Seconds as long as the slowest rank took; the factor of computing is the ranks' mean, since which of them shares
    its core with the network's work changes from step to step."""
    slowest = _slowest_of(of_ranks)
    factors = [mean(row[2] for row in rows) for rows in zip(*of_ranks, strict=True)]
    return tuple((size, seconds, factor) for (size, seconds, _), factor in zip(slowest, factors, strict=True))


def _line(points: Sequence[tuple[float, ...]]) -> Line:
    """Latency, of the smallest size; and seconds a byte, from the two largest: a rate-limited link sends the bytes of
    its first milliseconds at once, and the difference does not contain them."""
    (_, latency), (size, seconds), (largest, longest) = points[0], points[-2], points[-1]
    if longest <= seconds:  # chance, on a busy machine or with tiny messages
        return latency, longest / largest
    return latency, (longest - seconds) / (largest - size)
