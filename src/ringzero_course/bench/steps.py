"""What the benchmarks of training steps share: the networks they run on, how a step is timed, and their command.

Steps are taken in turns on the same ranks, and each is timed on its slowest rank.
"""

import functools
import gc
import time
from contextlib import nullcontext

import click

from ringzero_course.bench import options, results

RATES, WORLD_SIZES = ("200mbit", "1gbit"), (2, 4)
WARM_UP, FEWEST, SECONDS = 2, 5, 40.0  # steps; past SECONDS only the fewest are made


def cases(world_sizes, rates, models, known, progress):
    """``(name, model, ranks, launch)`` for each model on this machine and between two emulated nodes.

    Raises ValueError for a model not among the ``known``, ClusterUnavailable where nodes cannot be emulated.
    """
    import ringzero

    if unknown := set(models) - set(known):
        raise ValueError(f"models has {sorted(unknown)}; they are {', '.join(known)}")
    networks = [(n, None) for n in world_sizes] + [(2, rate) for rate in rates]
    for (ranks, rate), model in progress([(network, model) for network in networks for model in models]):
        with ringzero.Cluster(nodes=ranks, ranks_per_node=1, inter_node=rate) if rate else nullcontext() as cluster:
            launch = cluster.launch if rate else functools.partial(ringzero.launch, world_size=ranks, device="cpu")
            yield f"{model}, {f'2 nodes at {rate}' if rate else f'{ranks} ranks'}", model, ranks, launch


def seconds_in_turns(trainers, steps, group, peers):
    """On each rank: ``{which: seconds of each step}`` of ``trainers``, ``{which: function that makes one}``.

    ``peers`` are those of them that are not ours.
    """
    import torch
    import torch.distributed as dist

    from ringzero.measure import turns

    seconds, started = {which: [] for which in trainers}, time.monotonic()
    for number in range(-WARM_UP, steps):
        for which in turns.shuffled(trainers, number):
            turns.prepare(is_ours=which not in peers)
            gc.collect(0)
            dist.barrier(group)
            start = time.perf_counter()
            trainers[which]()
            took = torch.tensor([time.perf_counter() - start, time.monotonic() - started], dtype=torch.float64)
            dist.all_reduce(took, op=dist.ReduceOp.MAX, group=group)
            if number >= 0:
                seconds[which].append(took[0].item())
        if number + 1 >= FEWEST and took[1] > SECONDS:
            break
    return seconds


def command(name, help, rows, models, steps):
    """The click command of a benchmark whose ``rows(world_sizes, rates, models, steps, progress)`` yields rows."""

    @click.command(name, help=help)
    @click.option("--ranks", default="2,4", show_default=True, callback=options.world_sizes, help="On this machine.")
    @click.option("--rates", default=",".join(RATES), show_default=True, help='Between 2 nodes; "none" for no nodes.')
    @click.option("--models", default=",".join(models), show_default=True)
    @click.option("--steps", default=steps, show_default=True, type=click.IntRange(min=1))
    @options.json_option
    def bench(ranks, rates, models, steps, json_file):
        made = rows(ranks, () if rates == "none" else rates.split(","), models.split(","), steps, options.progress)
        print_and_write(made, json_file)

    return bench


def command_between_nodes(name, help, rows, steps):
    """The click command of a benchmark whose ``rows(rates, steps, progress)`` yields rows."""

    @click.command(name, help=help)
    @click.option("--rates", default=",".join(RATES), show_default=True, help="Between the nodes.")
    @click.option("--steps", default=steps, show_default=True, type=click.IntRange(min=1))
    @options.json_option
    def bench(rates, steps, json_file):
        print_and_write(rows(rates.split(","), steps, options.progress), json_file)

    return bench


def print_and_write(rows, json_file):
    """Print each row as it comes; write those that came, also when interrupted."""
    from ringzero.ranks.cluster import ClusterUnavailable

    made = []
    try:
        for each in rows:
            made.append(each)
            click.echo(
                f"{each['name']:<32} {each['metric']:<26} {each['ours']:>8.1f} {each['unit']:<4} vs "
                f"{each['peer']:>8.1f} {each['peer_name']}: {each['ratio']:.2f}"
            )
    except (ClusterUnavailable, ValueError) as error:
        raise click.ClickException(str(error)) from None
    finally:
        results.write(made, json_file)
