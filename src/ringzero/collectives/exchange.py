"""All-to-all: rank s has a chunk for every rank d, numbered ``s * N + d``."""

import numpy as np

from ringzero.collectives.schedule import Round, Rounds, Schedule, Traffic, check_world_size


def pairwise_all_to_all(world_size: int) -> Schedule:
    """In round k every rank sends the rank k further on its chunk: N-1 rounds, and each chunk travels once."""
    check_world_size(world_size)
    ranks = np.arange(world_size)

    def round(step):
        dst = (ranks + step + 1) % world_size
        return Round(src=ranks, dst=dst, chunk=ranks * world_size + dst, reduce=False)

    def alike():
        return (Traffic.of(ranks, (ranks + k) % world_size, 1, reduce=False) for k in range(1, world_size))

    return Schedule("all_to_all", "pairwise", world_size, world_size**2, Rounds(world_size - 1, round, alike))


def bruck_all_to_all(world_size: int) -> Schedule:
    """A chunk that must go j ranks further travels 2^k ranks in round k if j has that binary digit.

    ceil(log2 N) rounds of about S/2 bytes.

    Few messages, more bytes: for small chunks. Bruck et al., IEEE TPDS 8 (1997).
    """
    check_world_size(world_size)
    ranks = np.arange(world_size)

    def moving(step):
        return ranks[ranks >> step & 1 == 1]  # the distances j that have this binary digit

    def round(step):
        origin, distance = ranks[:, None], moving(step)
        src = (origin + distance % 2**step) % world_size  # the smaller powers of two have been travelled
        chunk = origin * world_size + (origin + distance) % world_size
        return Round(src=src, dst=(src + 2**step) % world_size, chunk=chunk, reduce=False)

    def alike():
        for step in range(steps):
            yield Traffic.of(ranks, (ranks + 2**step) % world_size, len(moving(step)), reduce=False)

    steps = (world_size - 1).bit_length()
    return Schedule("all_to_all", "bruck", world_size, world_size**2, Rounds(steps, round, alike))
