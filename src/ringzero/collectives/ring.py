"""Ring algorithms: every rank sends to its right neighbour and receives from its left.

Ring all-reduce: Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
JPDC 69 (2009). Each rank sends 2(N-1)/N times the buffer, which no algorithm can beat.
"""

import numpy as np

from ringzero.collectives.compose import pipeline
from ringzero.collectives.schedule import Round, Rounds, Schedule, Traffic, check_world_size


def ring_reduce_scatter(world_size: int) -> Schedule:
    """After N-1 rounds rank r holds the sum of everyone's chunk r."""
    check_world_size(world_size)
    return Schedule("reduce_scatter", "ring", world_size, world_size, _reduce_scatter_rounds(world_size))


def ring_all_gather(world_size: int) -> Schedule:
    """Rank r starts with chunk r; after N-1 rounds every rank has every chunk."""
    check_world_size(world_size)
    return Schedule("all_gather", "ring", world_size, world_size, _all_gather_rounds(world_size))


def ring_all_reduce(world_size: int) -> Schedule:
    """Reduce-scatter, then all-gather: 2(N-1) rounds of S/N bytes a rank."""
    check_world_size(world_size)
    rounds = _reduce_scatter_rounds(world_size) + _all_gather_rounds(world_size)
    return Schedule("all_reduce", "ring", world_size, world_size, rounds)


def bidirectional_ring_all_reduce(world_size: int) -> Schedule:
    """Two rings, each with half of the buffer: one to the right, the other to the left.

    Each rank sends to several ranks at once: S/2N bytes to each neighbour, in 2(N-1) rounds. That takes half the ring's
    time where the rank has a link of its own to each of them, and the same time where both messages leave by one port.
    """
    check_world_size(world_size)
    n, one_way = world_size, _reduce_scatter_rounds(world_size) + _all_gather_rounds(world_size)

    def both_ways(step):
        right = one_way[step]  # the same with rank r as rank -r goes to the left
        src, dst = (np.concatenate([ranks, -ranks % n]) for ranks in (right.src, right.dst))
        return Round(src, dst, np.concatenate([right.chunk, n + right.chunk]), np.tile(right.reduce, 2))

    return Schedule("all_reduce", "bidirectional_ring", n, 2 * n, Rounds(len(one_way), both_ways))


def _reduce_scatter_rounds(n):
    ranks = np.arange(n)
    right = (ranks + 1) % n

    def round(step):
        # Chunk c leaves rank c+1 first and arrives, summed, at rank c: rank r sends r-1, then r-2, ...
        return Round(src=ranks, dst=right, chunk=(ranks - 1 - step) % n, reduce=True)

    return Rounds(n - 1, round, alike=lambda: [Traffic.of(ranks, right, 1, reduce=True, times=n - 1)])


def _all_gather_rounds(n):
    ranks = np.arange(n)
    right = (ranks + 1) % n

    def round(step):
        return Round(src=ranks, dst=right, chunk=(ranks - step) % n, reduce=False)

    return Rounds(n - 1, round, alike=lambda: [Traffic.of(ranks, right, 1, reduce=False, times=n - 1)])


def ring_broadcast(world_size: int, root: int = 0, chunks: int = 1) -> Schedule:
    """The root's buffer goes round the ring in ``chunks`` pieces.

    One piece takes N-1 rounds of S bytes. K pieces that follow each other take N-2+K rounds of S/K bytes.
    """
    check_world_size(world_size, root)
    return Schedule("broadcast", "ring", world_size, chunks, _chain(world_size, root, chunks), root)


def ring_reduce(world_size: int, root: int = 0, chunks: int = 1) -> Schedule:
    """The broadcast backwards: ``chunks`` pieces come round the ring to the root, and each rank adds its own."""
    check_world_size(world_size, root)
    return Schedule("reduce", "ring", world_size, chunks, _chain(world_size, root, chunks).backwards(reduce=True), root)


def _chain(n, root, chunks):
    position = np.arange(n - 1)  # how far from the root; the last rank sends nothing on
    src = (root + position) % n
    return pipeline(src, (src + 1) % n, start=position, pieces=chunks)
