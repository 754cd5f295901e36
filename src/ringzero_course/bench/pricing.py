"""How long it takes to price a schedule, and how that grows with the number of ranks (``measure.pricing``).

The peer is the same price found by making every round. A schedule that says which of its rounds look alike is spared
that; the peer is measured only to ``PEER_UP_TO`` ranks.
"""

import itertools
import statistics

import click

from ringzero.measure.pricing import NAMES, REPEATS, WORLD_SIZES, growth, seconds
from ringzero_course.bench import options, results

PEER_UP_TO = 1024


def rows(world_sizes=WORLD_SIZES, names=NAMES):
    """A row for each algorithm and world size; ``peer`` and ``ratio`` are None where the peer is not measured."""
    found = []
    for name, world_size in itertools.product(names, world_sizes):
        ours, every_round = [], []
        for _ in range(REPEATS):
            ours.append(seconds(name, world_size))
            if world_size <= PEER_UP_TO:
                every_round.append(seconds(name, world_size, every_round=True))
        peer = statistics.median(every_round) if every_round else None
        what = f"price {name} all_reduce, {world_size} ranks"
        found.append(results.row(what, "time", statistics.median(ours), peer, "every round made", "s"))
    return found


@click.command("pricing")
@click.option(
    "--world-sizes",
    default=",".join(map(str, WORLD_SIZES)),
    callback=options.world_sizes,
    help="Ranks.",
    show_default=True,
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
    results.write(table, json_file)
