"""How long it takes to make and price a schedule, and how that grows with the number of ranks."""

import dataclasses
import math
import statistics
import time
from collections.abc import Sequence

from ringzero.collectives.algorithms import ALGORITHMS, shapes
from ringzero.network import price, switch, torus

WORLD_SIZES = (256, 1024, 4096, 16384, 65536)
NAMES = ("ring", "double_binary_tree", "bruck", "torus_2d")
REPEATS = 3
ALPHA, BANDWIDTH, SIZE = 1e-6, 50e9, 1e9  # seconds, bytes a second, bytes


def curve(name: str, world_sizes: Sequence[int] = WORLD_SIZES) -> list[tuple[int, float]]:
    """``[(ranks, seconds to make and price the all-reduce), ...]``, each the median of ``REPEATS``."""
    return [(n, statistics.median(seconds(name, n) for _ in range(REPEATS))) for n in world_sizes]


def growth(points: Sequence[tuple[float, float]]) -> float:
    """The exponent x for which the seconds grow as ranks to the power x: a least-squares line through logarithms."""
    x, y = ([math.log(value) for value in column] for column in zip(*points, strict=True))
    return statistics.linear_regression(x, y).slope


def seconds(name: str, world_size: int, every_round: bool = False) -> float:
    """Once: make the schedule and price it, on a torus if the algorithm is for one, else on a switch.

    With ``every_round`` all rounds are made; otherwise those that the schedule says look alike are made once.
    """
    if name == "torus_2d":
        machine = torus(min(shapes(world_size, 2), key=max), ALPHA, BANDWIDTH)
    else:
        machine = switch(world_size, ALPHA, BANDWIDTH)
    start = time.perf_counter()
    schedule = ALGORITHMS["all_reduce"][name](world_size)
    if every_round:
        schedule = dataclasses.replace(schedule, rounds=list(schedule.rounds))
    price(schedule, SIZE, machine)
    return time.perf_counter() - start
