"""Rings as NCCL builds them over machines of several GPUs: one for each network card, so that all cards work.

Ring c is the first ring with each machine's ranks rotated by c, so each leaves and enters through another card.
"""

import numpy as np

from ringzero.collectives.algorithms import ALGORITHMS
from ringzero.collectives.schedule import Round, Rounds, Schedule, Traffic, traffic_in_chunks


def nccl_rings(collective: str, nodes: int, ranks_per_node: int, channels: int | None = None) -> Schedule:
    """The ``collective`` ("all_reduce", "reduce_scatter" or "all_gather") by several rings at once.

    ``channels``: how many; as many as a node has ranks when None. Each ring has an equal part of the buffer.
    """
    ranks, channels = nodes * ranks_per_node, ranks_per_node if channels is None else channels
    ring, channel = ALGORITHMS[collective]["ring"](ranks), np.arange(channels)[:, None]

    def turned(place):
        return place // ranks_per_node * ranks_per_node + (place + channel) % ranks_per_node

    def together(step):
        one = ring.rounds[step]
        return Round(turned(one.src), turned(one.dst), turned(one.chunk) * channels + channel, one.reduce)

    def alike():
        for one in traffic_in_chunks(ring.rounds):
            src, dst = turned(one.src).ravel(), turned(one.dst).ravel()
            yield Traffic(src, dst, np.tile(one.share, channels), np.tile(one.reduced, channels), one.times)

    return Schedule(collective, "rings", ranks, ranks * channels, Rounds(len(ring.rounds), together, alike))


def primitives(schedule: Schedule, rank: int) -> list[tuple[str, int]]:
    """``(primitive, chunk)`` of each step of a rank, when NCCL runs a ring's ``schedule``.

    >>> primitives(ALGORITHMS["reduce_scatter"]["ring"](3), rank=0)
    [('send', 2), ('recvReduceSend', 1), ('recvReduceCopy', 0)]

    What a rank receives in one round it sends in the next, so one step does both.
    """
    rounds, steps = [list(one) for one in schedule.rounds], []
    for step in range(len(rounds) + 1):
        arrives = [t for one in rounds[max(step - 1, 0) : step] for t in one if t.dst == rank]
        leaves = [t for one in rounds[step : step + 1] for t in one if t.src == rank]
        adds, partial = any(t.reduce for t in arrives), any(t.reduce for t in leaves)
        kept = arrives and not partial and (adds or leaves)  # final: stored in the output as well
        words = [("recv", arrives), ("Reduce", adds), ("Copy", kept), ("Send", leaves)]
        name = "".join(word for word, done in words if done)
        (chunk,) = {t.chunk for t in arrives + leaves}  # one and the same
        steps.append((name[0].lower() + name[1:], chunk))
    return steps
