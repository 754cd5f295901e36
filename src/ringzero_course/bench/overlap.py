"""Training steps predicted beside measured: each way to share gradients, two models, one node and two with a slow link.

The machine is measured before each model (``measure.machine``): products at other numbers of tokens than those of the
models, AdamW, collectives, and what computing and communication take from each other. From that alone each step is
predicted, task by task (``steps``), and then run. A piece of work that is not training runs in turns with the steps: if
the machine has become slower or faster, its computing is scaled by that.
"""

import statistics
from contextlib import nullcontext
from itertools import combinations

from ringzero_course.bench import runner

LOOPBACK = "loopback"
TOKENS = (128, 512)  # of the products that are measured
BUSY_TRIES = 4
DIFFERENT = 1.05  # two measured steps this far apart have an order


def rows(links=(LOOPBACK, "1gbit", "200mbit"), steps=21, models=None, ways=None, **how):
    """DDP and ZeRO on two ranks: seconds of a step predicted and measured.

    At last how far off predictions are. ``how`` is for ``measure``.
    """
    import ringzero
    from ringzero.measure import machine, training

    found = {}
    chosen = {name: training.SHAPES[name] for name in models or training.SHAPES}
    ways = list(ways or (way for way in training.WAYS if way != training.NOTHING_SENT))
    for link in runner.progress(links):
        ranks = nullcontext(machine.OneNode(2)) if link == LOOPBACK else ringzero.Cluster(2, 1, inter_node=link)
        with ranks as cluster:
            for name, shape in chosen.items():
                here = _quietly(cluster, sorted((n, *both) for n in TOKENS for both in set(shape.sides)), how)
                taken = cluster.launch(training.measured, ways, shape, steps, timeout=600).returns
                now = here.now(training.step_seconds(taken, training.REFERENCE))
                for way in ways:
                    predicted = training.predicted(way, shape, now).seconds
                    measured = training.step_seconds(taken, way)
                    found[link, name, way] = predicted, measured
                    case = f"{way}, {name}, {link}"
                    yield runner.row(case, "step time", measured, predicted, "predicted", "s")
                case = f"spread of equal work, {name}, {link}"
                yield runner.row(case, "while measuring", here.spread, None, None, "share")
    yield from summary(found)


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
    yield runner.row("all", "median error", statistics.median(errors), None, None, "share")
    yield runner.row("all", "largest error", max(errors), None, None, "share")
    if ordered:
        yield runner.row("all", f"order of {ordered} pairs", right / ordered, None, None, "share right")


command = runner.command(
    rows, links=(runner.rates, "Between the two ranks."), steps=(runner.COUNT, "Measured, of each.")
)
