"""Ring all-reduce beside gloo's own and beside the naive one, in nccl-tests' columns.

ringzero asks Linux that gloo's event thread not preempt the thread that calls (``run.set_event_threads``). The peer is
measured as it comes, without that; once more with it ("calmed"), to show how much of the difference it is.
"""

import os
import statistics
import time

import click

from ringzero.bench import options
from ringzero.costs.alpha_beta import algorithm_bandwidth, bus_bandwidth

SIZES = tuple(2**k for k in range(16, 27, 2))  # 64 KiB to 64 MiB
WORLD_SIZES = (2, 4)
ITERATIONS = 41
SECONDS_A_SIZE = 8.0  # fewer iterations for the largest sizes, never fewer than MINIMUM
MINIMUM = 9
TIMEOUT = 300.0
PEER_NAMES = {"naive": "reduce + broadcast", "calmed": "gloo, calmed too"}


def rows(world_sizes=WORLD_SIZES, sizes=SIZES, device="cpu", progress=lambda configurations: configurations):
    """Measure each world size and buffer size; ``(table rows, comparison rows)``.

    A table row has ``world_size, bytes, implementation, seconds, algbw, busbw, wrong``; seconds are the median.
    """
    from ringzero import launch

    table, comparison = [], []
    for world_size, size in progress([(n, size) for n in world_sizes for size in sizes]):
        measured = launch(_measure, size, world_size=world_size, device=device, timeout=TIMEOUT).returns[0]
        speed = {}
        for implementation, (samples, wrong) in measured.items():
            elapsed = statistics.median(samples)
            speed[implementation] = bus_bandwidth("all_reduce", world_size, size, elapsed)
            table.append(
                {
                    "world_size": world_size,
                    "bytes": size,
                    "implementation": implementation,
                    "seconds": elapsed,
                    "algbw": algorithm_bandwidth(size, elapsed),
                    "busbw": speed[implementation],
                    "wrong": wrong,
                    "samples": len(samples),
                }
            )
        for peer in [name for name in measured if name != "ring"]:
            comparison.append(
                {
                    "name": f"all_reduce {size} B, {world_size} ranks",
                    "metric": "busbw",
                    "ours": speed["ring"] / 1e9,
                    "peer": speed[peer] / 1e9,
                    "peer_name": PEER_NAMES.get(peer, peer),
                    "ratio": speed["ring"] / speed[peer],
                    "unit": "GB/s",
                }
            )
    return table, comparison


def measure(size):
    """On each rank: ``{implementation: (seconds of each iteration on its slowest rank, wrong elements)}``."""
    import torch
    import torch.distributed as dist

    import ringzero
    from ringzero.collectives.run import set_event_threads

    backend = "nccl" if torch.get_default_device().type == "cuda" else "gloo"
    group = dist.new_group(backend=backend)  # as under torchrun: launch records what goes through its own group
    implementations = {
        "ring": lambda t: ringzero.all_reduce(t, group=group),
        backend: lambda t: dist.all_reduce(t, group=group),
        "calmed": lambda t: dist.all_reduce(t, group=group),
        "naive": lambda t: ringzero.all_reduce(t, algorithm="flat", group=group),
    }
    if backend == "nccl" or not hasattr(os, "SCHED_BATCH"):
        del implementations["calmed"]
    rank, world_size = dist.get_rank(), dist.get_world_size()
    numel = size // 4
    # Whole numbers, so that the sum is exact in any order and every element can be checked.
    source = torch.arange(numel, dtype=torch.int64).mul_(rank + 3).remainder_(1009).float()
    expected = sum(
        torch.arange(numel, dtype=torch.int64).mul_(r + 3).remainder_(1009) for r in range(world_size)
    ).float()
    buffer = torch.empty_like(source)
    wrong, samples = {}, {name: [] for name in implementations}
    names = list(implementations)
    started = time.monotonic()
    for iteration in range(-3, ITERATIONS):
        turn = iteration % len(names)
        for name in names[turn:] + names[:turn]:  # nobody always follows the same neighbour
            buffer.copy_(source)
            if "calmed" in names:
                set_event_threads(os.SCHED_OTHER if name == backend else os.SCHED_BATCH)
            _synchronise(buffer)
            start = time.perf_counter()
            implementations[name](buffer)
            if buffer.is_cuda:
                torch.cuda.synchronize()
            elapsed = torch.tensor([time.perf_counter() - start, time.monotonic() - started], dtype=torch.float64)
            dist.all_reduce(elapsed, op=dist.ReduceOp.MAX)
            if iteration < 0:
                wrong[name] = int((buffer != expected).sum())
            else:
                samples[name].append(float(elapsed[0]))
        if iteration >= MINIMUM and float(elapsed[1]) > SECONDS_A_SIZE:
            break
    return {name: (samples[name], wrong[name]) for name in names}


_measure = measure  # what rows() runs; a test puts a faulty one in its place


def _synchronise(buffer):
    import torch
    import torch.distributed as dist

    if buffer.is_cuda:
        torch.cuda.synchronize()
    dist.barrier()


def table_text(table):
    """The measurements as nccl-tests prints them; time in microseconds, bandwidths in GB/s (1e9)."""
    lines = []
    for world_size in sorted({row["world_size"] for row in table}):
        lines += [
            f"# all_reduce, {world_size} ranks, float, sum; in place; median of the slowest rank's time",
            f"#{'size':>11} {'count':>12} {'type':>6} {'redop':>6} {'root':>5} {'what':>8} "
            f"{'time':>10} {'algbw':>7} {'busbw':>7} {'#wrong':>7}",
            f"#{'(B)':>11} {'(elements)':>12} {'':>6} {'':>6} {'':>5} {'':>8} {'(us)':>10} {'(GB/s)':>7} {'(GB/s)':>7}",
        ]
        for row in table:
            if row["world_size"] == world_size:
                lines.append(
                    f"{row['bytes']:>12} {row['bytes'] // 4:>12} {'float':>6} {'sum':>6} {-1:>5} "
                    f"{row['implementation']:>8} {row['seconds'] * 1e6:>10.2f} {row['algbw'] / 1e9:>7.2f} "
                    f"{row['busbw'] / 1e9:>7.2f} {row['wrong']:>7}"
                )
        ours = [r["busbw"] for r in table if r["world_size"] == world_size and r["implementation"] == "ring"]
        lines.append(f"# Avg bus bandwidth, ring: {statistics.mean(ours) / 1e9:.4f}")
    return "\n".join(lines)


def comparison_text(comparison):
    lines = [f"{'':<32} {'ours':>8} {'peer':>8} {'ratio':>6}"]
    for row in comparison:
        lines.append(
            f"{row['name']:<32} {row['ours']:>8.2f} {row['peer']:>8.2f} {row['ratio']:>6.2f}  "
            f"{row['unit']} vs {row['peer_name']}"
        )
    return "\n".join(lines)


@click.command("collectives")
@click.option(
    "--world-sizes", default="2,4", callback=options.world_sizes, help="Ranks, comma separated.", show_default=True
)
@click.option(
    "--sizes", default="64K,256K,1M,4M,16M,64M", callback=options.sizes, help="Buffer sizes.", show_default=True
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@options.json_option
def command(world_sizes, sizes, device, json_file):
    """Ring all-reduce beside the backend's own (gloo, NCCL) and beside reduce + broadcast."""
    from tqdm import tqdm

    try:
        table, comparison = rows(world_sizes, sizes, device, progress=tqdm)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    click.echo(table_text(table))
    click.echo(comparison_text(comparison))
    options.write(comparison, json_file)
