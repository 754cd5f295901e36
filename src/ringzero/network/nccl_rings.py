"""Rings as NCCL builds them over machines of several GPUs: one for each network card, so that all cards work.

In each ring the ranks of a machine are turned round by one place, so each leaves and enters through another card.
"""

import numpy as np

from ringzero.collectives.algorithms import ALGORITHMS
from ringzero.collectives.schedule import Round, Rounds, Schedule, Traffic, traffic_in_chunks


def nccl_rings(collective: str, nodes: int, ranks_per_node: int) -> Schedule:
    """The ``collective`` ("all_reduce", "reduce_scatter" or "all_gather") by as many rings as a node has ranks.

    Each ring has an equal part of the buffer.
    """
    ranks = nodes * ranks_per_node
    ring, channel = ALGORITHMS[collective]["ring"](ranks), np.arange(ranks_per_node)[:, None]

    def turned(place):
        return place // ranks_per_node * ranks_per_node + (place + channel) % ranks_per_node

    def together(step):
        one = ring.rounds[step]
        return Round(turned(one.src), turned(one.dst), turned(one.chunk) * ranks_per_node + channel, one.reduce)

    def alike():
        for one in traffic_in_chunks(ring.rounds):
            src, dst = turned(one.src).ravel(), turned(one.dst).ravel()
            yield Traffic(src, dst, np.tile(one.share, ranks_per_node), np.tile(one.reduced, ranks_per_node), one.times)

    return Schedule(collective, "rings", ranks, ranks * ranks_per_node, Rounds(len(ring.rounds), together, alike))
