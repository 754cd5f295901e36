"""Binomial trees: in every round each rank that has the data sends it to one that has not: ceil(log2 N) rounds.

Any number of ranks, any root. Costs: Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005). A broadcast of a large buffer
does better as scatter and all-gather: van de Geijn, "On global combine operations", JPDC 22 (1994).
"""

import numpy as np

from ringzero.collectives.recursive import bruck_all_gather
from ringzero.collectives.ring import ring_all_gather
from ringzero.collectives.schedule import Round, Rounds, Schedule, check_world_size


def binomial_broadcast(world_size: int, root: int = 0) -> Schedule:
    """ceil(log2 N) rounds of S bytes."""
    check_world_size(world_size, root)
    return Schedule("broadcast", "binomial", world_size, 1, _broadcast_rounds(world_size, root), root)


def binomial_reduce(world_size: int, root: int = 0) -> Schedule:
    """The broadcast backwards."""
    check_world_size(world_size, root)
    rounds = _broadcast_rounds(world_size, root).backwards(reduce=True)
    return Schedule("reduce", "binomial", world_size, 1, rounds, root)


def binomial_all_reduce(world_size: int) -> Schedule:
    """Reduce to rank 0, then broadcast from it."""
    check_world_size(world_size)
    down = _broadcast_rounds(world_size, 0)
    return Schedule("all_reduce", "binomial", world_size, 1, down.backwards(reduce=True) + down)


def binomial_scatter(world_size: int, root: int = 0) -> Schedule:
    """Each rank passes on the chunks of the ranks below it, half as many each round: the root sends S(N-1)/N bytes."""
    check_world_size(world_size, root)
    return Schedule("scatter", "binomial", world_size, world_size, _scatter_rounds(world_size, root), root)


def binomial_gather(world_size: int, root: int = 0) -> Schedule:
    """The scatter backwards."""
    check_world_size(world_size, root)
    rounds = _scatter_rounds(world_size, root).backwards(reduce=False)
    return Schedule("gather", "binomial", world_size, world_size, rounds, root)


def scatter_ring_broadcast(world_size: int, root: int = 0) -> Schedule:
    """Binomial scatter, then ring all-gather (van de Geijn): about 2S bytes a rank however many there are."""
    check_world_size(world_size, root)
    rounds = _scatter_rounds(world_size, root) + ring_all_gather(world_size).rounds
    return Schedule("broadcast", "scatter_ring", world_size, world_size, rounds, root)


def scatter_bruck_broadcast(world_size: int, root: int = 0) -> Schedule:
    """Binomial scatter, then Bruck's all-gather: about 2S bytes a rank in 2 ceil(log2 N) rounds."""
    check_world_size(world_size, root)
    rounds = _scatter_rounds(world_size, root) + bruck_all_gather(world_size).rounds
    return Schedule("broadcast", "scatter_bruck", world_size, world_size, rounds, root)


def _broadcast_rounds(n, root):
    depth = (n - 1).bit_length()

    def round(step):
        src, reach = _senders(n, depth, step)
        return Round((src + root) % n, (src + reach + root) % n, chunk=0, reduce=False)

    return Rounds(depth, round)


def _scatter_rounds(n, root):
    depth = (n - 1).bit_length()

    def round(step):
        src, reach = _senders(n, depth, step)
        chunk = (src + reach)[:, None] + np.arange(reach)  # of the receiver and of all ranks below it
        there = chunk < n
        src, chunk = np.broadcast_to(src[:, None], chunk.shape)[there], chunk[there]
        return Round((src + root) % n, (src + reach + root) % n, (chunk + root) % n, reduce=False)

    return Rounds(depth, round)


def _senders(n, depth, step):
    """``(senders, distance to their receivers)`` in this round, ranks counted from the root.

    Rank 0 sends to N/2; then 0 and N/2 send to N/4 and 3N/4; and so on.
    """
    reach = 2 ** (depth - 1 - step)
    return np.arange(0, n - reach, 2 * reach), reach
