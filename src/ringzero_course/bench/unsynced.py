"""Every way to train of chapters 7 to 9 beside data parallelism: final loss, bytes a step, seconds a step.

The task is a small character-level language model, or the BERT of chapter 6. Ranks are the nodes of an emulated
cluster. Every method takes as many steps on the same samples, from the same start, with several seeds.
"""

import statistics

import click

from ringzero_course.bench import options, results
from ringzero_course.bench.steps import print_and_write

STEPS, SEEDS, POINTS, RATE = 320, 3, 8, "200mbit"


def rows(
    world_sizes=(2, 4), rate=RATE, steps=STEPS, seeds=SEEDS, names=None, task=None,
    progress=lambda cases: cases, curves=None,
):  # fmt: skip
    """For each number of ranks and method a row of loss, of bytes and of seconds; medians over the seeds.

    ``curves``, a dict, is given ``{(ranks, method): a list of Points for each seed}``.
    """
    import ringzero
    from ringzero_course.tasks import characters, methods

    task = task or characters
    names = list(names or methods.METHODS)
    if unknown := set(names) - set(methods.METHODS):
        raise ValueError(f"methods has {sorted(unknown)}; they are {', '.join(methods.METHODS)}")
    first = next(iter(methods.METHODS))
    names = [first, *(name for name in names if name != first)]
    shapes = [tuple(p.shape) for p in task.Model().parameters()]
    for n in world_sizes:
        made = {name: [] for name in names}
        with ringzero.Cluster(nodes=n, ranks_per_node=1, inter_node=rate) as cluster:
            for seed, name in progress([(seed, name) for seed in range(seeds) for name in names]):
                ranks = cluster.launch(methods.train, name, steps, POINTS, seed, task, timeout=600, trace=True)
                made[name].append(methods.merged(ranks.returns))
        if curves is not None:
            curves.update({(n, name): of_seeds for name, of_seeds in made.items()})
        ends = {name: [curve[-1] for curve in of_seeds] for name, of_seeds in made.items()}
        for name in names:
            yield from _rows(name, n, steps, ends, first, methods.METHODS[name].sent(shapes, n, steps))


def _rows(name, n, steps, ends, first, formula):
    case = f"{name}, {n} ranks"
    loss, peers = ([end.loss for end in ends[which]] for which in (name, first))
    yield results.row(case, "final loss", statistics.median(loss), statistics.median(peers), first, "nats")
    sent = statistics.median(end.bytes for end in ends[name])
    yield results.row(case, "bytes a step", sent / steps / 1e3, formula / steps / 1e3, "formula", "kB")
    ours, theirs = ([end.seconds / steps * 1e3 for end in ends[which]] for which in (name, first))
    paired = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    yield results.row(case, "step time", statistics.median(ours), statistics.median(theirs), first, "ms", paired)


@click.command("unsynced")
@click.option("--ranks", default="2,4", show_default=True, callback=options.world_sizes, help="Each a node.")
@click.option("--rate", default=RATE, show_default=True, help="Of each node's link.")
@click.option("--steps", default=STEPS, show_default=True, type=click.IntRange(min=8))
@click.option("--seeds", default=SEEDS, show_default=True, type=click.IntRange(min=1))
@click.option("--methods", default=None, help="Some of them, with semicolons. Data parallelism is always among them.")
@click.option("--bert", metavar="FILE", help="Train the BERT in this file, book/examples/bert.py, instead.")
@click.option("--figure", type=click.Path(dir_okay=False, writable=True), help="Write the curves as a page here.")
@options.json_option
def command(ranks, rate, steps, seeds, methods, bert, figure, json_file):
    """Servers, local SGD, gossip and compression beside data parallelism: loss, bytes and seconds."""
    from ringzero_course.tasks import characters, sentences

    task = sentences.Sentences(bert) if bert else characters
    names = [name.strip() for name in methods.split(";")] if methods else None
    curves = {}
    print_and_write(rows(ranks, rate, steps, seeds, names, task, options.progress, curves), json_file)
    if figure:
        with open(figure, "w") as file:
            file.write("<!doctype html><meta charset=utf-8><title>Unsynchronised training</title>")
            file.writelines(_figures(curves, rate, steps))


def _figures(curves, rate, steps):
    from ringzero_course.figures.trade_offs import trade_off

    for n in sorted({n for n, _ in curves}):
        ends = {name: [curve[-1] for curve in of_seeds] for (ranks, name), of_seeds in curves.items() if ranks == n}
        loss = {name: statistics.median(end.loss for end in points) for name, points in ends.items()}
        for x, of_end in (
            ("kB that all ranks send in a step", lambda end: end.bytes / steps / 1e3),
            ("ms a step", lambda end: end.seconds / steps * 1e3),
        ):
            points = {name: (statistics.median(map(of_end, points)), loss[name]) for name, points in ends.items()}
            title = f"Loss after {steps} steps, {n} ranks at {rate}"
            yield f"<h2>{title}</h2>{trade_off(points, x=x, y='loss, nats', title=title).html}"
