"""The naive algorithms: everything through the root, one rank at a time. The root's link carries it all."""

from ringzero.collectives.schedule import Round, Schedule, check_world_size


def flat_reduce(world_size, root=0):
    """Every other rank sends its whole buffer to the root, which adds it: N-1 rounds of S bytes."""
    check_world_size(world_size, root)
    return Schedule("reduce", "flat", world_size, 1, tuple(_reduce_rounds(world_size, root)), root)


def flat_broadcast(world_size, root=0):
    """The root sends its whole buffer to each other rank in turn: N-1 rounds of S bytes."""
    check_world_size(world_size, root)
    return Schedule("broadcast", "flat", world_size, 1, tuple(_broadcast_rounds(world_size, root)), root)


def flat_all_reduce(world_size):
    """Reduce to rank 0, then broadcast from it."""
    check_world_size(world_size)
    rounds = (*_reduce_rounds(world_size, 0), *_broadcast_rounds(world_size, 0))
    return Schedule("all_reduce", "flat", world_size, 1, rounds)


def _reduce_rounds(n, root):
    for rank in range(n):
        if rank != root:
            yield Round(src=rank, dst=root, chunk=0, reduce=True)


def _broadcast_rounds(n, root):
    for rank in range(n):
        if rank != root:
            yield Round(src=root, dst=rank, chunk=0, reduce=False)
