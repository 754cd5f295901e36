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
from ringzero.costs.nccl_tuner import bandwidth_limit, hop_latency, latency, ll_bandwidth_limit
from ringzero.costs.page.alpha_beta import bus_bandwidth_factor
from ringzero.network.pricing import Price, check_size, price
from ringzero.network.topology import Topology

CHUNKS = (1, 4, 16, 64, 256)  # numbers of pieces to try for pipelined algorithms


def protocol_factors(protocol: str, algorithm: str = "ring") -> tuple[float, float, float]:
    """What ``Topology.scaled`` takes for a protocol of NCCL: fractions of the hops of a ring under Simple.

    >>> [round(factor, 2) for factor in protocol_factors("LL")]  # 0.6 of 3.4 us over NVLink, 2.7 of 14 over the network
    [0.18, 0.5, 0.19]

    ``algorithm``: "ring" or "tree", whose hops differ. Raises ValueError for other names.
    """
    within, between = (
        hop_latency(algorithm, protocol, link) / hop_latency("ring", "Simple", link) for link in ("nvlink", "net")
    )
    return within, payload_fraction(protocol), between


# By protocol: factors of the alphas within a node, of the bandwidths, and of the alphas between nodes.
PROTOCOLS = {name: protocol_factors(name) for name in ("Simple", "LL", "LL128")}


def nccl_protocols(simple: Price, generation: str, cpu: str = "Intel", channels: int = 8) -> list[Price]:
    """What NCCL's tuner expects of a ring all-reduce under each protocol: a ``Price`` named after it.

    ``simple``: the price of the rings on a machine of nodes, of any size; its bandwidth is taken for Simple's. Latency
    is ``nccl_tuner.latency``, which charges the network only for the messages of a chunk that cross it. LL has the
    limit of ``ll_bandwidth_limit``, LL128 one for each channel. Errors as for these.
    """
    (nodes, _), n, step = simple.topology.shape, simple.topology.world_size, simple.steps[0]
    factor = bus_bandwidth_factor("all_reduce", n)
    full = factor / simple.coefficients[1]
    limits = {
        "LL": ll_bandwidth_limit(generation, nodes, cpu),
        "LL128": channels * bandwidth_limit("per_channel_ring_ll128", generation, nodes),
    }
    prices = []
    for protocol in PROTOCOLS:
        bus = min(full * payload_fraction(protocol), limits.get(protocol, full))
        whole = replace(
            step,
            times=1,
            latency=latency("all_reduce", "ring", protocol, n, nodes),
            transfer=factor / bus,
            share=sum(each.times * each.share for each in simple.steps),
        )
        prices.append(replace(simple, algorithm=protocol, steps=(whole,)))
    return prices


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
                factors = _named(PROTOCOLS, protocol, "protocol")
                under = "" if protocol == "Simple" else f", {protocol}"
                priced = price(schedule, 0, topology.scaled(*factors))
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
    lines = [(start, transfer + reduction, p) for p in prices for start, transfer, reduction in [p.coefficients]]
    start, slope, best = min(lines, key=lambda line: line[:2])
    size, found = 0.0, [(0.0, best.at(0.0))]
    while flatter := [line for line in lines if line[1] < slope * (1 - 1e-9)]:  # equal but for rounding is not flatter
        # The next to be the fastest is, of the flatter lines, the one that crosses this line first.
        size, _, (start, slope, best) = min(
            (((line[0] - start) / (slope - line[1]), line[1], line) for line in flatter), key=lambda met: met[:2]
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
