"""Predicted beside measured: all-reduces by several algorithms on emulated clusters (``measure.prediction``)."""

from ringzero.collectives.algorithms import ALGORITHMS
from ringzero.measure.links import fit_links
from ringzero.measure.prediction import NAMES, SECONDS, SIZES, compare
from ringzero_course.bench import networks, runner


def rows(rates=networks.RATES, algorithms=NAMES, sizes=SIZES, seconds=SECONDS):
    """All-reduces on two emulated nodes with two ranks each: seconds predicted and measured.

    For each rate, size and algorithm a row of seconds, and one of how many times faster than the first it is.
    """
    for rate, cluster in networks.between_nodes(rates, ranks_per_node=2):
        found = compare(cluster, fit_links(cluster), algorithms, sizes, seconds)
        first = {each.size: each for each in found if each.algorithm == algorithms[0]}
        for each in found:
            name, beside = f"{each.algorithm} all_reduce, {each.size} bytes, {rate}", first[each.size]
            yield runner.row(name, "time", each.measured, each.predicted, "predicted", "s")
            if each is not beside:
                faster = beside.measured / each.measured, beside.predicted / each.predicted
                metric, ratio = f"{algorithms[0]}'s time / its own", faster[0] / faster[1]
                yield runner.row(name, metric, *faster, "predicted", "times", ratio)


command = runner.command(
    rows,
    rates=(runner.rates, "Of the link between the nodes."),
    algorithms=(runner.names(ALGORITHMS["all_reduce"]), "Of all-reduce."),
    sizes=(runner.sizes, "Of the buffer."),
    seconds=(float, "Of tries for each algorithm and size."),
)
