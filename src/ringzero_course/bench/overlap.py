"""Training steps predicted beside measured: each way to share gradients, two models, one node and two with a slow link.

The machine is measured before each model (``measure.machine``): products at other numbers of tokens than those of the
models, AdamW, collectives, and what computing and communication take from each other. From that alone each step is
predicted, task by task (``steps``), and then run. A piece of work that is not training runs in turns with the steps: if
the machine has become slower or faster, its computing is scaled by that.
"""

import statistics
from contextlib import nullcontext
from itertools import combinations

import click

from ringzero_course.bench import options, results

LOOPBACK, RATES = "loopback", ("1gbit", "200mbit")
STEPS = 21
TOKENS = (128, 512)  # of the products that are measured
BUSY_TRIES = 4
DIFFERENT = 1.05  # two measured steps this far apart have an order


def rows(links=(LOOPBACK, *RATES), models=None, ways=None, steps=STEPS, progress=lambda links: links, **how):
    """For each link, model and way a row of seconds, and three about all of them. ``how`` is for ``measure``."""
    import ringzero
    from ringzero.measure import machine, training

    made, found = [], {}
    chosen = {name: training.SHAPES[name] for name in models or training.SHAPES}
    ways = list(ways or (way for way in training.WAYS if way != training.NOTHING_SENT))
    for link in progress(links):
        alone = link == LOOPBACK
        ranks = machine.OneNode(2) if alone else ringzero.Cluster(nodes=2, ranks_per_node=1, inter_node=link)
        with nullcontext(ranks) if alone else ranks as cluster:
            for name, shape in chosen.items():
                here = _quietly(cluster, sorted((n, *both) for n in TOKENS for both in set(shape.sides)), how)
                taken = cluster.launch(training.measured, ways, shape, steps, timeout=600).returns
                now = here.now(training.step_seconds(taken, training.REFERENCE))
                for way in ways:
                    predicted = training.predicted(way, shape, now).seconds
                    measured = training.step_seconds(taken, way)
                    found[link, name, way] = predicted, measured
                    made.append(
                        results.row(f"{way}, {name}, {link}", "step time", measured, predicted, "predicted", "s")
                    )
                where = f"spread of equal work, {name}, {link}"
                made.append(results.row(where, "while measuring", here.spread, None, None, "share"))
    return made + summary(found)


def _quietly(cluster, shapes, how):
    """The machine, measured again while it is busy; the quietest of some measurements."""
    from ringzero.measure import machine

    found = []
    while not found or (found[-1].spread > machine.QUIET and len(found) < BUSY_TRIES):
        found.append(machine.measure(cluster, shapes, **how))
    return min(found, key=lambda each: each.spread)


def summary(found):
    """How far off predictions are, and how often they have two steps of one link and model in the right order."""
    errors = [abs(predicted / measured - 1) for predicted, measured in found.values()]
    right = ordered = 0
    for (one, (p1, m1)), (other, (p2, m2)) in combinations(found.items(), 2):
        if one[:2] == other[:2] and max(m1, m2) > DIFFERENT * min(m1, m2):
            ordered += 1
            right += (p1 < p2) == (m1 < m2)
    made = [
        results.row("all", "median error", statistics.median(errors), None, None, "share"),
        results.row("all", "largest error", max(errors), None, None, "share"),
    ]
    if ordered:
        made.append(results.row("all", f"order of {ordered} pairs", right / ordered, None, None, "share right"))
    return made


@click.command("overlap")
@click.option("--links", default=",".join((LOOPBACK, *RATES)), show_default=True, help="Between the two ranks.")
@click.option("--steps", default=STEPS, show_default=True, help="Measured, of each.")
@options.json_option
def command(links, steps, json_file):
    """DDP and ZeRO on two ranks: seconds of a step predicted and measured."""
    from ringzero.ranks.cluster import ClusterUnavailable

    try:
        made = rows(links.split(","), steps=steps, progress=options.progress)
    except (ClusterUnavailable, ValueError) as error:
        raise click.ClickException(str(error)) from None
    for row in made:
        if row["peer"] is None:
            click.echo(f"{row['name']:<44} {row['metric']:<18} {row['ours']:.3f} {row['unit']}")
        else:
            click.echo(
                f"{row['name']:<60} measured {row['ours'] * 1e3:7.1f} ms, predicted {row['peer'] * 1e3:7.1f}: "
                f"{row['ratio']:.2f}"
            )
    results.write(made, json_file)
