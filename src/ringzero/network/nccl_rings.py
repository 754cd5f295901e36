"""Rings as NCCL builds them over machines of several GPUs: one for each network card, so that all cards work.

In each ring the ranks of a machine are turned round by one place, so each leaves and enters through another card.
"""

import numpy as np

from ringzero.collectives.algorithms import ALGORITHMS
from ringzero.collectives.schedule import Round, Rounds, Schedule, Traffic, traffic_in_chunks


def nccl_rings(collective: str, nodes: int, ranks_per_node: int, channels: int | None = None) -> Schedule:
    """The ``collective`` ("all_reduce", "reduce_scatter" or "all_gather") by rings side by side.

    ``channels``  rings, each with an equal part of the buffer; by default as many as ranks in a node

    Raises ValueError unless there are 1 to ``ranks_per_node`` channels.
    """
    channels = ranks_per_node if channels is None else channels
    if not 1 <= channels <= ranks_per_node:
        raise ValueError(f"channels is {channels}; with {ranks_per_node} ranks in a node give 1 to {ranks_per_node}")
    ranks = nodes * ranks_per_node
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
