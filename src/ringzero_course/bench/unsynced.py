"""Every way to train of chapters 7 to 9 beside data parallelism: final loss, bytes a step, seconds a step.

The task is a small character-level language model, or the BERT of chapter 6. Ranks are the nodes of an emulated
cluster. Every method takes as many steps on the same samples, from the same start, with several seeds.
"""

import statistics

import click

from ringzero_course.bench import runner

POINTS = 8


def rows(ranks=(2, 4), rate="200mbit", steps=320, seeds=3, methods=None, bert=None, figure=None):
    """Servers, local SGD, gossip and compression beside data parallelism: loss, bytes and seconds.

    For each number of ranks and method a row of loss, of bytes and of seconds; medians over the seeds.
    """
    import ringzero
    from ringzero_course.tasks import characters, sentences
    from ringzero_course.tasks.methods import METHODS, merged, train

    task = sentences.Sentences(bert) if bert else characters
    first = next(iter(METHODS))
    chosen = dict.fromkeys([first, *(methods or METHODS)])
    if unknown := set(chosen) - set(METHODS):
        raise ValueError(f"methods has {sorted(unknown)}; they are {', '.join(METHODS)}")
    shapes, ends = [tuple(p.shape) for p in task.Model().parameters()], {}
    for n in ranks:
        with ringzero.Cluster(nodes=n, ranks_per_node=1, inter_node=rate) as cluster:
            for seed, name in runner.progress([(seed, name) for seed in range(seeds) for name in chosen]):
                returned = cluster.launch(train, name, steps, POINTS, seed, task, timeout=600, trace=True).returns
                ends.setdefault((n, name), []).append(merged(returned)[-1])
        for name in chosen:
            case, mine, firsts = f"{name}, {n} ranks", ends[n, name], ends[n, first]
            yield runner.row(case, "final loss", _median(mine, "loss"), _median(firsts, "loss"), first, "nats")
            sent, formula = (
                each / steps / 1e3 for each in (_median(mine, "bytes"), METHODS[name].sent(shapes, n, steps))
            )
            yield runner.row(case, "bytes a step", sent, formula, "formula", "kB")
            seconds = ([end.seconds / steps for end in of_seeds] for of_seeds in (mine, firsts))
            yield runner.milliseconds(case, *seconds, first)
    if figure:
        figure.write("<!doctype html><meta charset=utf-8><title>Unsynchronised training</title>")
        figure.writelines(_figures(ends, rate, steps))


def _median(ends, field):
    return statistics.median(getattr(end, field) for end in ends)


def _figures(ends, rate, steps):
    from ringzero_course.figures.trade_offs import trade_off

    for n in sorted({n for n, _ in ends}):
        of_method = {name: of_seeds for (ranks, name), of_seeds in ends.items() if ranks == n}
        for x, field, unit in (("kB that all ranks send in a step", "bytes", 1e3), ("ms a step", "seconds", 1e-3)):
            points = {
                name: (_median(of_seeds, field) / steps / unit, _median(of_seeds, "loss"))
                for name, of_seeds in of_method.items()
            }
            title = f"Loss after {steps} steps, {n} ranks at {rate}"
            yield f"<h2>{title}</h2>{trade_off(points, x=x, y='loss, nats', title=title).html}"


def _with_semicolons(text):
    return text and [name.strip() for name in text.split(";")]


command = runner.command(
    rows,
    ranks=(runner.ranks, "Each a node."),
    rate=(str, "Of each node's link."),
    steps=(click.IntRange(min=8), "Of each method."),
    seeds=(runner.COUNT, "Of each method."),
    methods=(_with_semicolons, "Some of them, with semicolons. Data parallelism is always among them."),
    bert=(str, "Train the BERT in this file, book/examples/bert.py, instead."),
    figure=(click.File("w", lazy=True), "Write the loss beside bytes and seconds as a page here."),
)
