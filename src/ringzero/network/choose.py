"""Which algorithm is fastest on a machine, and at which sizes another one becomes faster.

    best_algorithm("all_reduce", 64e6, dgx_h100(4)).algorithm
    crossovers(candidates("all_reduce", dgx_h100(4)))

A price is a straight line over the size of the buffer, so the sizes at which the fastest changes are where lines cross:
the corners of their lower envelope, found without trying sizes.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ringzero.collectives.algorithms import ALGORITHMS, options
from ringzero.collectives.schedule import is_whole
from ringzero.costs.nccl import payload_fraction
from ringzero.costs.nccl_tuner import ll_bandwidth_limit
from ringzero.costs.page.alpha_beta import bus_bandwidth_factor
from ringzero.network.pricing import Price, check_size, price
from ringzero.network.topology import Topology

CHUNKS = (1, 4, 16, 64, 256)  # numbers of pieces to try for pipelined algorithms

# NCCL's protocols: their alpha and their bandwidth, as fractions of Simple's. The hop is a ring's over the network in
# NCCL 2.30's cost model (src/graph/tuning.cc); within a node the fractions of alpha are 0.18 for LL and 0.56 for LL128.
HOP_SECONDS = {"Simple": 14e-6, "LL": 2.7e-6, "LL128": 4e-6}
PROTOCOLS = {name: (hop / HOP_SECONDS["Simple"], payload_fraction(name)) for name, hop in HOP_SECONDS.items()}


def protocols_within_limits(
    simple: Price, generation: str, nodes: int, cpu: str = "Intel"
) -> dict[str, tuple[float, float]]:
    """``PROTOCOLS`` on a machine where NCCL's tuner expects less of LL than half of the links' bandwidth.

    ``simple`` is an all-reduce's price under Simple, of any size. The rest is as for ``ll_bandwidth_limit``, with its
    errors.
    """
    full = bus_bandwidth_factor("all_reduce", simple.topology.world_size) / simple.coefficients[1]
    alpha, half = PROTOCOLS["LL"]
    return PROTOCOLS | {"LL": (alpha, min(half, ll_bandwidth_limit(generation, nodes, cpu) / full))}


def candidates(
    collective: str,
    topology: Topology,
    algorithms: Iterable[str] | None = None,
    protocols: Iterable[str] = ("Simple",),
    chunks: Iterable[int] = CHUNKS,
) -> list[Price]:
    """The ``Price`` of every algorithm that ``topology`` can run, for an empty buffer (``at`` gives other sizes).

    ``algorithms``: names to try, all when None. ``protocols``: names in ``PROTOCOLS``. ``chunks``: numbers of pieces to
    try. Algorithms on a grid take the topology's shape where it has as many sides, else the most even grid. Above a few
    thousand ranks name the algorithms: some have N*N different messages.
    Algorithms that do not take the topology's number of ranks are left out.
    Raises ValueError for a collective, an algorithm or a protocol that is not known, for none of them, and for a number
    of pieces below 1.
    """
    known = _named(ALGORITHMS, collective, "collective")
    names = _some("algorithms", list(known) if algorithms is None else algorithms)
    protocols, chunks = _some("protocols", protocols), _some("chunks", chunks)
    for pieces in chunks:
        if not is_whole(pieces) or pieces < 1:
            raise ValueError(f"chunks is {chunks}; give whole numbers of pieces, 1 or more each")
    prices = []
    for name in names:
        _named(known, name, "algorithm")
        for schedule, label in _schedules(collective, name, topology, chunks):
            for protocol in protocols:
                alpha, bandwidth = _named(PROTOCOLS, protocol, "protocol")
                under = "" if protocol == "Simple" else f", {protocol}"
                priced = price(schedule, 0, topology.scaled(alpha, bandwidth))
                prices.append(replace(priced, algorithm=label + under))
    return prices


def best_algorithm(collective: str, size: float, topology: Topology, **restrictions: Any) -> Price:
    """The ``Price`` of the fastest algorithm for ``size`` bytes; restrictions as for ``candidates``.

    Raises ValueError as it does, for a size that is no number of bytes, and where no algorithm fits.
    """
    check_size(size)
    prices = [price.at(size) for price in candidates(collective, topology, **restrictions)]
    if not prices:
        raise ValueError(
            f"none of the algorithms {restrictions['algorithms']} of {collective} takes {topology.world_size} ranks; "
            "give others, or none for all"
        )
    return min(prices, key=lambda price: price.seconds)


def crossovers(prices: Iterable[Price]) -> list[tuple[float, Price]]:
    """``(size in bytes, Price)`` of the fastest for 0 bytes, and of each that becomes the fastest at a larger size.

    Raises ValueError for no prices.
    """
    prices = _some("prices", prices)
    lines = [(latency, transfer + reduction, p) for p in prices for latency, transfer, reduction in [p.coefficients]]
    latency, slope, best = min(lines, key=lambda line: line[:2])
    size, found = 0.0, [(0.0, best.at(0.0))]
    while flatter := [line for line in lines if line[1] < slope * (1 - 1e-9)]:  # equal but for rounding is not flatter
        # The next to be the fastest is, of the flatter lines, the one that crosses this line first.
        size, _, (latency, slope, best) = min(
            (((line[0] - latency) / (slope - line[1]), line[1], line) for line in flatter), key=lambda met: met[:2]
        )
        found.append((size, best.at(size)))
    return found


def _schedules(collective, name, topology, chunks):
    """Yield ``(schedule, label)`` for what the algorithm makes for the topology: one for each number of pieces."""
    build, takes, n = ALGORITHMS[collective][name], options(collective, name), topology.world_size
    try:
        schedule = build(n)
    except ValueError:  # a world size that the algorithm does not take
        return
    if "chunks" in takes:
        yield from ((build(n, chunks=k), f"{name}, {k} pieces" if k > 1 else name) for k in chunks)
    elif len(topology.shape) == len(getattr(build, "sides", ())):
        yield build(n, shape=topology.shape), name
    else:
        yield schedule, name


def _some(what, values):
    values = list(values)
    if not values:
        raise ValueError(f"{what} is []; give at least one")
    return values


def _named(table, name, kind):
    if name not in table:
        raise ValueError(f"{kind} is {name!r}; it is one of {', '.join(table)}")
    return table[name]
