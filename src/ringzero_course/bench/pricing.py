"""How long it takes to price a schedule, and how that grows with the number of ranks (``measure.pricing``).

The peer is the same price found by making every round. A schedule that says which of its rounds look alike is spared
that; the peer is measured only to ``PEER_UP_TO`` ranks.
"""

import itertools
import statistics

from ringzero.measure.pricing import NAMES, REPEATS, WORLD_SIZES, growth, seconds
from ringzero_course.bench import runner

PEER_UP_TO = 1024


def rows(world_sizes=WORLD_SIZES):
    """Seconds to price all-reduce schedules of many ranks."""
    points = {name: [] for name in NAMES}
    for name, n in itertools.product(NAMES, world_sizes):
        ours, every_round = [], []
        for _ in range(REPEATS):
            ours.append(seconds(name, n))
            if n <= PEER_UP_TO:
                every_round.append(seconds(name, n, every_round=True))
        peer = statistics.median(every_round) if every_round else None
        median = statistics.median(ours)
        points[name].append((n, median))
        yield runner.row(f"price {name} all_reduce, {n} ranks", "time", median, peer, "every round made", "s")
    if len(set(world_sizes)) > 1:
        for name in NAMES:
            yield f"{name}: time grows as N^{growth(points[name]):.2f}"


command = runner.command(rows, world_sizes=(runner.ranks, "Ranks."))
