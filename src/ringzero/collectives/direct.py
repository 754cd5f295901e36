"""Every rank sends to every other rank at once: one round or two instead of the ring's 2(N-1).

GPUs that write into each other's memory through a switch add this way. PyTorch calls the two all-reduces one-shot and
two-shot (``torch.distributed._symmetric_memory``); NCCL has had kernels of both kinds since 2.27.
"""

import numpy as np

from ringzero.collectives.schedule import Round, Rounds, Schedule, Traffic, check_world_size


def two_shot_all_reduce(world_size: int) -> Schedule:
    """Rank r gets everyone's chunk r and adds; then it sends the sum to everyone. The ring's bytes in 2 rounds.

    Each rank sends to several ranks at once.
    """
    check_world_size(world_size)
    told = _to_all(world_size, lambda src, dst: src)
    return Schedule("all_reduce", "two_shot", world_size, world_size, told.backwards(reduce=True) + told)


def one_shot_all_reduce(world_size: int) -> Schedule:
    """Every rank sends its whole buffer to everyone and adds what arrives: 1 round, (N-1)S bytes a rank.

    To be proved, priced and drawn. It is not in ``ALGORITHMS``: ``run`` adds what arrives to what a rank has, so each
    rank would add in an order of its own, and floating-point sums would differ between ranks. A kernel that has all N
    buffers before it adds takes them in one order everywhere.
    """
    check_world_size(world_size)
    rounds = _to_all(world_size, lambda src, dst: 0).backwards(reduce=True)
    return Schedule("all_reduce", "one_shot", world_size, 1, rounds)


def _to_all(n, chunk_of):
    """One round in which every rank sends a chunk to every other rank; no round for a single rank."""

    def pairs():
        src = np.repeat(np.arange(n), n - 1)
        return src, (src + np.tile(np.arange(1, n), n)) % n

    def round(step):
        src, dst = pairs()
        return Round(src, dst, chunk_of(src, dst), reduce=False)

    return Rounds(int(n > 1), round, lambda: (Traffic.of(*pairs(), 1, reduce=False) for _ in range(int(n > 1))))
