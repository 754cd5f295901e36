"""Predicted beside measured: all-reduces by several algorithms on emulated clusters (``measure.prediction``)."""

import click

from ringzero.collectives.algorithms import ALGORITHMS
from ringzero.measure.links import fit_links
from ringzero.measure.prediction import NAMES, SECONDS, SIZES, compare
from ringzero_course.bench import options, results

RATES = ("200mbit", "1gbit")


def rows(rates=RATES, names=NAMES, sizes=SIZES, seconds=SECONDS, progress=lambda rates: rates):
    """For each rate, size and algorithm a row of seconds, and one of how many times faster than the first it is."""
    from ringzero.ranks.cluster import Cluster

    made = []
    for rate in progress(rates):
        with Cluster(nodes=2, ranks_per_node=2, inter_node=rate) as cluster:
            found = compare(cluster, fit_links(cluster), names, sizes, seconds)
        first = {each.size: each for each in found if each.algorithm == names[0]}
        for each in found:
            name, beside = f"{each.algorithm} all_reduce, {each.size} bytes, {rate}", first[each.size]
            made.append(results.row(name, "time", each.measured, each.predicted, "predicted", "s"))
            if each is not beside:
                faster = beside.measured / each.measured, beside.predicted / each.predicted
                metric, ratio = f"{names[0]}'s time / its own", faster[0] / faster[1]
                made.append(results.row(name, metric, *faster, "predicted", "times", ratio))
    return made


@click.command("prediction")
@click.option("--rates", default=",".join(RATES), show_default=True, help="Of the link between the nodes.")
@click.option("--algorithms", default=",".join(NAMES), show_default=True, help="Of all-reduce.")
@click.option("--sizes", default="1M,4M", show_default=True, callback=options.sizes, help="Of the buffer.")
@click.option("--seconds", default=SECONDS, show_default=True, help="Of tries for each algorithm and size.")
@options.json_option
def command(rates, algorithms, sizes, seconds, json_file):
    """All-reduces on two emulated nodes with two ranks each: seconds predicted and measured."""
    from ringzero.ranks.cluster import ClusterUnavailable

    names = algorithms.split(",")
    if unknown := [name for name in names if name not in ALGORITHMS["all_reduce"]]:
        raise click.BadParameter(f"{', '.join(unknown)}: all_reduce has {', '.join(ALGORITHMS['all_reduce'])}")
    try:
        made = rows(rates.split(","), names, sizes, seconds, progress=options.progress)
    except (ClusterUnavailable, ValueError) as error:
        raise click.ClickException(str(error)) from None
    for row in made:
        click.echo(
            f"{row['name']:<56} {row['metric']:<22} measured {row['ours']:.4f} {row['unit']}, "
            f"predicted {row['peer']:.4f}: {row['ratio']:.3f}"
        )
    results.write(made, json_file)
