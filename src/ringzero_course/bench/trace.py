"""What recording costs: the same all-reduce over the same connections, recorded and not, in turns."""

import itertools
import statistics
import time

import click

from ringzero_course.bench import options, results

SIZE, WORLD_SIZE, ITERATIONS = 16 * 2**20, 4, 151


def rows(size=SIZE, world_sizes=(2, WORLD_SIZE), iterations=ITERATIONS, progress=lambda world_sizes: world_sizes):
    """A row for each world size and implementation: ``ours`` recorded, ``peer`` not, in ms; ratio 1 costs nothing."""
    from ringzero import launch

    made = []
    for world_size in progress(world_sizes):
        returned = launch(measure, size, iterations, world_size=world_size, device="cpu", timeout=300, trace=True)
        for name, seconds in returned.returns[0].items():
            recorded, plain = (statistics.median(samples) * 1e3 for samples in seconds)
            what = f"{name} of {size / 2**20:g} MiB, {world_size} ranks"
            made.append(results.row(what, "time", recorded, plain, "not recorded", "ms"))
    return made


def measure(size, iterations):
    """On each rank: ``{implementation: (seconds recorded, seconds not recorded)}``, of the slowest rank each time."""
    import torch
    import torch.distributed as dist

    import ringzero
    from ringzero.measure import turns

    recorded = dist.new_group()
    groups = (recorded, recorded._inner)  # the same connections: two groups alike differ by as much as recording costs
    implementations = {
        "ring all-reduce": lambda tensor, group: ringzero.all_reduce(tensor, group=group),
        "gloo all-reduce": lambda tensor, group: group.allreduce([tensor]).wait(),
    }
    tensor = torch.zeros(size // 4)
    seconds = {name: ([], []) for name in implementations}
    for iteration in range(-3, iterations):
        for name, which in turns.shuffled(itertools.product(implementations, (0, 1)), iteration):
            dist.barrier()
            start = time.perf_counter()
            implementations[name](tensor, groups[which])
            elapsed = torch.tensor([time.perf_counter() - start], dtype=torch.float64)
            dist.all_reduce(elapsed, op=dist.ReduceOp.MAX)
            if iteration >= 0:
                seconds[name][which].append(elapsed.item())
    return seconds


@click.command("trace")
@options.json_option
def command(json_file):
    """What recording every operation adds to a 16 MiB all-reduce."""
    made = rows(progress=options.progress)
    for row in made:
        click.echo(
            f"{row['name']:<36} {row['ours']:>8.2f} ms recorded, {row['peer']:>8.2f} ms not: "
            f"{100 * (row['ours'] / row['peer'] - 1):+.1f} %"
        )
    results.write(made, json_file)
