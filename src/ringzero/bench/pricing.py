"""How long it takes to price a schedule, and how that grows with the number of ranks.

The peer is the same price found by making every round. A schedule that says which of its rounds look alike is spared
that; the peer is measured only to ``PEER_UP_TO`` ranks.
"""

import dataclasses
import itertools
import math
import statistics
import time

import click

from ringzero.bench import options
from ringzero.collectives.algorithms import ALGORITHMS, shapes
from ringzero.network import price, switch, torus

WORLD_SIZES = (256, 1024, 4096, 16384, 65536)
NAMES = ("ring", "double_binary_tree", "bruck", "torus_2d")
PEER_UP_TO = 1024
REPEATS = 3
ALPHA, BANDWIDTH, SIZE = 1e-6, 50e9, 1e9


def curve(name, world_sizes=WORLD_SIZES):
    """``[(ranks, seconds to make and price the all-reduce), ...]``, each the median of ``REPEATS``."""
    return [(n, statistics.median(_seconds(name, n) for _ in range(REPEATS))) for n in world_sizes]


def growth(points):
    """The exponent x for which the seconds grow as ranks to the power x: a least-squares line through logarithms."""
    x, y = ([math.log(value) for value in column] for column in zip(*points, strict=True))
    return statistics.linear_regression(x, y).slope


def rows(world_sizes=WORLD_SIZES, names=NAMES):
    """A row for each algorithm and world size; ``peer`` and ``ratio`` are None where the peer is not measured."""
    found = []
    for name, world_size in itertools.product(names, world_sizes):
        ours, peer = [], []
        for _ in range(REPEATS):
            ours.append(_seconds(name, world_size))
            if world_size <= PEER_UP_TO:
                peer.append(_seconds(name, world_size, every_round=True))
        ours, peer = statistics.median(ours), statistics.median(peer) if peer else None
        found.append(
            {
                "name": f"price {name} all_reduce, {world_size} ranks",
                "metric": "time",
                "ours": ours,
                "peer": peer,
                "peer_name": "every round made",
                "ratio": peer and peer / ours,
                "unit": "s",
            }
        )
    return found


def _seconds(name, world_size, every_round=False):
    """Once: make the schedule and price it, on a torus if it is for one."""
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


@click.command("pricing")
@click.option(
    "--world-sizes", default="256,1024,4096,16384,65536", callback=options.world_sizes, help="Ranks.", show_default=True
)
@options.json_option
def command(world_sizes, json_file):
    """Seconds to price all-reduce schedules of many ranks."""
    table = rows(world_sizes)
    for row in table:
        peer = "" if row["peer"] is None else f"   {row['peer_name']}: {row['peer']:.4f} s, ratio {row['ratio']:.1f}"
        click.echo(f"{row['name']:<50} {row['ours']:>9.4f} s{peer}")
    if len(set(world_sizes)) > 1:
        for i, name in enumerate(NAMES):
            points = zip(world_sizes, [row["ours"] for row in table[i * len(world_sizes) :]], strict=False)
            click.echo(f"{name}: time grows as N^{growth(points):.2f}")
    options.write(table, json_file)
