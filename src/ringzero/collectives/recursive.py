"""Partners at distances 1, 2, 4, ...: ceil(log2 N) rounds.

Recursive doubling (the butterfly) and recursive halving-doubling: Rabenseifner, "Optimization of collective reduction
operations", ICCS 2004; Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005). For any number of ranks: Bruck et al.,
"Efficient algorithms for all-to-all communications in multiport message-passing systems", IEEE TPDS 8 (1997), and the
same played backwards, Träff, arXiv 2410.14234 (2024). The barrier: Hensgen, Finkel & Manber, IJPP 17 (1988).
"""

import numpy as np

from ringzero.collectives.schedule import Round, Rounds, Schedule, Traffic, check_world_size


def recursive_doubling_all_reduce(world_size: int) -> Schedule:
    """Everyone exchanges its whole sum with the rank whose number differs in bit 0, then bit 1, ...

    S·log2 N bytes a rank. Where N is no power of two, the ranks beyond the largest power of two first send their
    buffers to be added by other ranks, and receive the result at the end: two rounds more.
    """
    check_world_size(world_size)
    core = _power_of_two_up_to(world_size)
    ranks = np.arange(core)

    def round(step):
        return Round(src=ranks, dst=ranks ^ 2**step, chunk=0, reduce=True)

    rounds = _with_the_rest(world_size, 1, Rounds(core.bit_length() - 1, round))
    return Schedule("all_reduce", "recursive_doubling", world_size, 1, rounds)


def rabenseifner_all_reduce(world_size: int) -> Schedule:
    """Reduce-scatter by recursive halving, all-gather by recursive doubling: 2S(N-1)/N bytes in 2 log2 N rounds.

    The ranks beyond a power of two are treated as in recursive doubling.
    """
    check_world_size(world_size)
    core = _power_of_two_up_to(world_size)
    gather = _doubling_rounds(core)
    rounds = _with_the_rest(world_size, core, gather.backwards(reduce=True) + gather)
    return Schedule("all_reduce", "rabenseifner", world_size, core, rounds)


def recursive_halving_reduce_scatter(world_size: int) -> Schedule:
    """Exchange half the buffer with the rank N/2 away, then a quarter with the rank N/4 away, ...

    Raises ValueError unless N is a power of two.
    """
    _check_power_of_two("recursive halving", world_size)
    rounds = _doubling_rounds(world_size).backwards(reduce=True)
    return Schedule("reduce_scatter", "recursive_halving", world_size, world_size, rounds)


def recursive_doubling_all_gather(world_size: int) -> Schedule:
    """Exchange one chunk with the neighbour, then two with the rank 2 away, ...

    Raises ValueError unless N is a power of two.
    """
    _check_power_of_two("recursive doubling", world_size)
    return Schedule("all_gather", "recursive_doubling", world_size, world_size, _doubling_rounds(world_size))


def bruck_all_gather(world_size: int) -> Schedule:
    """Rank r sends all it has to rank r-1, then r-2, r-4, ...: any N, S(N-1)/N bytes in ceil(log2 N) rounds."""
    check_world_size(world_size)
    return Schedule("all_gather", "bruck", world_size, world_size, _bruck_rounds(world_size))


def bruck_reduce_scatter(world_size: int) -> Schedule:
    """The all-gather backwards: any N, S(N-1)/N bytes in ceil(log2 N) rounds."""
    check_world_size(world_size)
    rounds = _bruck_rounds(world_size).backwards(reduce=True)
    return Schedule("reduce_scatter", "bruck", world_size, world_size, rounds)


def bruck_all_reduce(world_size: int) -> Schedule:
    """Reduce-scatter, then all-gather: the ring's bytes in 2 ceil(log2 N) rounds, whatever N."""
    check_world_size(world_size)
    gather = _bruck_rounds(world_size)
    return Schedule("all_reduce", "bruck", world_size, world_size, gather.backwards(reduce=True) + gather)


def dissemination_barrier(world_size: int) -> Schedule:
    """Rank r signals rank r+1, then r+2, r+4, ...: a signal stands for all ranks its sender has heard of."""
    check_world_size(world_size)
    ranks = np.arange(world_size)

    def round(step):
        return Round(src=ranks, dst=(ranks + 2**step) % world_size, chunk=0, reduce=True)

    return Schedule("barrier", "dissemination", world_size, 1, Rounds((world_size - 1).bit_length(), round))


def _doubling_rounds(n):
    ranks = np.arange(n)

    def round(step):
        have = (ranks >> step << step)[:, None] + np.arange(2**step)
        return Round(src=ranks[:, None], dst=(ranks ^ 2**step)[:, None], chunk=have, reduce=False)

    steps = n.bit_length() - 1
    return Rounds(steps, round, lambda: (Traffic.of(ranks, ranks ^ 2**s, 2**s, reduce=False) for s in range(steps)))


def _bruck_rounds(n):
    ranks, steps = np.arange(n), (n - 1).bit_length()

    def round(step):
        have = ranks[:, None] + np.arange(count(step))
        return Round(src=ranks[:, None], dst=(ranks - 2**step)[:, None] % n, chunk=have % n, reduce=False)

    def count(step):
        return min(2**step, n - 2**step)

    return Rounds(
        steps, round, lambda: (Traffic.of(ranks, (ranks - 2**s) % n, count(s), reduce=False) for s in range(steps))
    )


def _with_the_rest(n, chunks, rounds):
    """``rounds`` run on the first ranks, a power of two. Before, each other rank sends its buffer to one of them, to be
    added; afterwards it receives the result."""
    core = _power_of_two_up_to(n)
    rest = np.arange(core, n)
    if len(rest) == 0:
        return rounds
    told = Rounds(1, lambda step: Round((rest - core)[:, None], rest[:, None], np.arange(chunks), reduce=False))
    return told.backwards(reduce=True) + rounds + told


def _power_of_two_up_to(n):
    return 2 ** (n.bit_length() - 1)


def _check_power_of_two(name, world_size):
    check_world_size(world_size)
    below = _power_of_two_up_to(world_size)
    if world_size != below:
        raise ValueError(
            f"world_size is {world_size}; {name} takes a power of two, such as {below} and {2 * below}. Bruck takes any"
        )
