"""The naive algorithms: everything goes through the root, one rank at a time, so the root's link carries it all."""

import numpy as np

from ringzero.collectives.schedule import Round, Rounds, Schedule, Traffic, check_world_size


def flat_reduce(world_size: int, root: int = 0) -> Schedule:
    """Every other rank sends its whole buffer to the root, which adds it: N-1 rounds of S bytes."""
    check_world_size(world_size, root)
    return Schedule("reduce", "flat", world_size, 1, _to_root(world_size, root, _whole, reduce=True), root)


def flat_broadcast(world_size: int, root: int = 0) -> Schedule:
    """The root sends its whole buffer to each other rank in turn: N-1 rounds of S bytes."""
    check_world_size(world_size, root)
    return Schedule("broadcast", "flat", world_size, 1, _from_root(world_size, root, _whole), root)


def flat_all_reduce(world_size: int) -> Schedule:
    """Reduce to rank 0, then broadcast from it."""
    check_world_size(world_size)
    rounds = _to_root(world_size, 0, _whole, reduce=True) + _from_root(world_size, 0, _whole)
    return Schedule("all_reduce", "flat", world_size, 1, rounds)


def flat_gather(world_size: int, root: int = 0) -> Schedule:
    """Every other rank sends its chunk to the root: N-1 rounds of S/N bytes."""
    check_world_size(world_size, root)
    return Schedule("gather", "flat", world_size, world_size, _to_root(world_size, root, _own), root)


def flat_scatter(world_size: int, root: int = 0) -> Schedule:
    """The root sends each other rank its chunk: N-1 rounds of S/N bytes."""
    check_world_size(world_size, root)
    return Schedule("scatter", "flat", world_size, world_size, _from_root(world_size, root, _own), root)


def flat_all_gather(world_size: int) -> Schedule:
    """Gather to rank 0, which then sends each rank all chunks but its own."""
    check_world_size(world_size)
    n = world_size
    rounds = _to_root(n, 0, _own) + _from_root(n, 0, lambda rank: _others(rank, n), chunks=n - 1)
    return Schedule("all_gather", "flat", n, n, rounds)


def flat_reduce_scatter(world_size: int) -> Schedule:
    """Reduce the whole buffer to rank 0, then scatter it."""
    check_world_size(world_size)
    n = world_size
    rounds = _to_root(n, 0, lambda rank: np.arange(n), chunks=n, reduce=True) + _from_root(n, 0, _own)
    return Schedule("reduce_scatter", "flat", n, n, rounds)


def flat_all_to_all(world_size: int) -> Schedule:
    """Every rank sends rank 0 all it has for others; then rank 0 sends every rank all that others have for it."""
    check_world_size(world_size)
    n = world_size
    collect = _to_root(n, 0, lambda rank: rank * n + _others(rank, n), chunks=n - 1)
    hand_out = _from_root(n, 0, lambda rank: _others(rank, n) * n + rank, chunks=n - 1)
    return Schedule("all_to_all", "flat", n, n * n, collect + hand_out)


def flat_barrier(world_size: int) -> Schedule:
    """Every rank reports to rank 0; when all have reported, rank 0 tells each."""
    check_world_size(world_size)
    rounds = _to_root(world_size, 0, _whole, reduce=True) + _from_root(world_size, 0, _whole)
    return Schedule("barrier", "flat", world_size, 1, rounds)


def _to_root(n, root, chunks_of, *, chunks=1, reduce=False):
    """Each other rank r in turn sends the root ``chunks_of(r)``, which are ``chunks`` in number."""

    def sender(step):
        return step + (step >= root)

    return Rounds(
        n - 1,
        lambda step: Round(src=sender(step), dst=root, chunk=chunks_of(sender(step)), reduce=reduce),
        lambda: (Traffic.of([sender(step)], [root], chunks, reduce) for step in range(n - 1)),
    )


def _from_root(n, root, chunks_of, *, chunks=1):
    """The root sends each other rank r in turn ``chunks_of(r)``, which are ``chunks`` in number."""

    def receiver(step):
        return step + (step >= root)

    return Rounds(
        n - 1,
        lambda step: Round(src=root, dst=receiver(step), chunk=chunks_of(receiver(step)), reduce=False),
        lambda: (Traffic.of([root], [receiver(step)], chunks, reduce=False) for step in range(n - 1)),
    )


def _whole(rank):
    return 0


def _own(rank):
    return rank


def _others(rank, n):
    """All ranks but ``rank``: rank+1, rank+2, ..., round the end to rank-1."""
    return (rank + np.arange(1, n)) % n
