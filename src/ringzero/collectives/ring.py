"""Ring algorithms: every rank sends to its right neighbour and receives from its left.

Ring all-reduce: Patarasuk & Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
JPDC 69 (2009). Each rank sends 2(N-1)/N times the buffer, which no algorithm can beat.
"""

import numpy as np

from ringzero.collectives.schedule import Round, Schedule, check_world_size


def ring_reduce_scatter(world_size):
    """After N-1 rounds rank r holds the sum of everyone's chunk r."""
    check_world_size(world_size)
    return Schedule("reduce_scatter", "ring", world_size, world_size, tuple(_reduce_scatter_rounds(world_size)))


def ring_all_gather(world_size):
    """Rank r starts with chunk r; after N-1 rounds every rank has every chunk."""
    check_world_size(world_size)
    return Schedule("all_gather", "ring", world_size, world_size, tuple(_all_gather_rounds(world_size)))


def ring_all_reduce(world_size):
    """Reduce-scatter, then all-gather: 2(N-1) rounds of S/N bytes a rank."""
    check_world_size(world_size)
    rounds = (*_reduce_scatter_rounds(world_size), *_all_gather_rounds(world_size))
    return Schedule("all_reduce", "ring", world_size, world_size, rounds)


def _reduce_scatter_rounds(n):
    ranks = np.arange(n)
    for step in range(n - 1):
        # Chunk c leaves rank c+1 first and arrives, summed, at rank c: rank r sends r-1, then r-2, ...
        yield Round(src=ranks, dst=(ranks + 1) % n, chunk=(ranks - 1 - step) % n, reduce=True)


def _all_gather_rounds(n):
    ranks = np.arange(n)
    for step in range(n - 1):
        yield Round(src=ranks, dst=(ranks + 1) % n, chunk=(ranks - step) % n, reduce=False)


def ring_broadcast(world_size, root=0, chunks=1):
    """The root's buffer goes round the ring in ``chunks`` pieces.

    One piece: N-1 rounds of S bytes. K pieces follow each other through the pipe: N-2+K rounds of S/K bytes.
    """
    check_world_size(world_size, root)
    if chunks < 1:
        raise ValueError(f"chunks is {chunks!r}; cut the buffer into at least 1")
    position = np.arange(world_size - 1)  # how far from the root; the last rank sends nothing on
    rounds = []
    for step in range(world_size - 2 + chunks if world_size > 1 else 0):
        chunk = step - position
        busy = (chunk >= 0) & (chunk < chunks)
        src = (root + position[busy]) % world_size
        rounds.append(Round(src=src, dst=(src + 1) % world_size, chunk=chunk[busy], reduce=False))
    return Schedule("broadcast", "ring", world_size, chunks, tuple(rounds), root)
