"""Data-parallel training steps: ours, torch's DDP and no communication at all, taken in turns on the same ranks.

A step is forward, backward and an optimizer step, timed on its slowest rank. What it takes beyond the step that sends
nothing is exposed communication: what overlap could not hide. Peak memory is what the kernel counts as resident, at
its highest in three steps, beyond what the process held before the model was made; each in fresh ranks.
"""

import gc
import statistics
import time
from contextlib import nullcontext

import click

from ringzero.bench import options

RATES = ("200mbit", "1gbit")
WORLD_SIZES = (2, 4)
MODELS = ("mlp", "transformer")
BUCKET_MIB = 4  # with torch's 25, models of this size would have two buckets and little to overlap
STEPS, WARM_UP, SECONDS = 41, 3, 40.0


def rows(world_sizes=WORLD_SIZES, rates=RATES, models=MODELS, steps=STEPS, progress=lambda cases: cases):
    """For each network and model: rows of step time, exposed communication and peak memory, ours beside torch's DDP."""
    from ringzero import launch
    from ringzero.launch.cluster import Cluster

    if unknown := set(models) - set(MODELS):
        raise ValueError(f"models has {sorted(unknown)}; they are {', '.join(MODELS)}")
    networks = [(n, None) for n in world_sizes] + [(2, rate) for rate in rates]
    cases = [(*network, model) for network in networks for model in models]
    made = []
    for ranks, rate, model in progress(cases):
        with Cluster(nodes=ranks, ranks_per_node=1, inter_node=rate) if rate else nullcontext() as cluster:
            run = cluster.launch if rate else on_one_machine(launch, ranks)
            seconds = run(step_seconds, model, steps, timeout=600).returns[0]
            memory = {name: max(run(peak_bytes, model, name).returns) for name in ("ours", "torch")}
        name = f"{model}, {f'2 nodes at {rate}' if rate else f'{ranks} ranks'}"
        made += _rows(name, seconds, memory)
    return made


def on_one_machine(launch, ranks):
    return lambda fn, *args, **options: launch(fn, *args, world_size=ranks, device="cpu", **options)


def _rows(name, seconds, memory):
    ms = {which: [s * 1e3 for s in samples] for which, samples in seconds.items()}
    exposed = {
        which: statistics.median(a - b for a, b in zip(samples, ms["alone"], strict=True))
        for which, samples in ms.items()
    }
    paired = statistics.median(theirs / ours for ours, theirs in zip(ms["ours"], ms["torch"], strict=True))
    median = {which: statistics.median(samples) for which, samples in ms.items()}
    overlapped = statistics.median(a / b for a, b in zip(ms["ours"], ms["optimizer overlapped"], strict=True))
    mib = {which: peak / 2**20 for which, peak in memory.items()}
    return [
        row(name, "step time", median["ours"], median["torch"], "torch DDP", paired, "ms"),
        row(name, "exposed communication", exposed["ours"], exposed["torch"], "torch DDP", None, "ms"),
        row(name, "step without communication", median["alone"], median["ours"], "ours", None, "ms"),
        row(name, "optimizer overlapped", median["optimizer overlapped"], median["ours"], "after", overlapped, "ms"),
        row(name, "peak memory", mib["ours"], mib["torch"], "torch DDP", None, "MiB"),
    ]


def row(name, metric, ours, peer, peer_name, ratio, unit):
    return {
        **{"name": name, "metric": metric, "ours": ours, "peer": peer, "peer_name": peer_name},
        **{"ratio": peer / ours if ratio is None else ratio, "unit": unit},
    }


def step_seconds(model, steps):
    """On each rank: ``{which: seconds of each step}``, of the slowest rank."""
    import torch
    import torch.distributed as dist

    group = dist.new_group(backend="gloo")  # launch's own records, and torch's DDP does not take it
    trainers = {which: trainer(which, model, group) for which in ("ours", "optimizer overlapped", "torch", "alone")}
    seconds, names, started = {which: [] for which in trainers}, list(trainers), time.monotonic()
    for number in range(-WARM_UP, steps):
        turn = number % len(names)
        for which in names[turn:] + names[:turn]:
            gc.collect(0)
            dist.barrier(group)
            start = time.perf_counter()
            trainers[which]()
            took = torch.tensor([time.perf_counter() - start, time.monotonic() - started], dtype=torch.float64)
            dist.all_reduce(took, op=dist.ReduceOp.MAX, group=group)
            if number >= 0:
                seconds[which].append(took[0].item())
        if number >= 8 and took[1] > SECONDS:
            break
    return seconds


def trainer(which, model, group):
    """A function that makes one training step: "ours", "optimizer overlapped", "torch" or "alone"."""
    import torch

    from ringzero.data_parallel import DistributedDataParallel

    torch.manual_seed(0)
    module, batch = build(model)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)
    after = optimizer
    if which == "torch":
        module = torch.nn.parallel.DistributedDataParallel(module, process_group=group, bucket_cap_mb=BUCKET_MIB)
    elif which == "optimizer overlapped":
        module = DistributedDataParallel(module, group=group, bucket_cap_mb=BUCKET_MIB, step=optimizer)
        after = None
    elif which == "ours":
        module = DistributedDataParallel(module, group=group, bucket_cap_mb=BUCKET_MIB)

    def step():
        optimizer.zero_grad()
        module(batch).square().mean().backward()
        if after:
            after.step()

    return step


def build(model):
    """``(module, batch)``: about 12.6 MB of gradients, in 24 even tensors (mlp) or in uneven ones (transformer)."""
    import torch
    from torch import nn

    if model == "mlp":
        layers = [nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(12)]
        return nn.Sequential(*layers), torch.randn(512, 512)
    block = nn.TransformerEncoderLayer(256, nhead=4, dim_feedforward=1024, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(block, num_layers=4, enable_nested_tensor=False), torch.randn(8, 64, 256)


def peak_bytes(model, which):
    """On each rank: resident bytes at their highest, beyond what there was before the model."""
    import torch.distributed as dist

    group = dist.new_group(backend="gloo")
    dist.barrier(group)
    before = _resident()
    step = trainer(which, model, group)
    for _ in range(3):
        step()
    return _resident("VmHWM") - before


def _resident(field="VmRSS"):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field + ":"))


@click.command("ddp")
@click.option("--ranks", default="2,4", show_default=True, callback=options.world_sizes, help="On this machine.")
@click.option("--rates", default=",".join(RATES), show_default=True, help='Between two nodes; "none" leaves them out.')
@click.option("--models", default=",".join(MODELS), show_default=True)
@click.option("--steps", default=STEPS, show_default=True, type=click.IntRange(min=1))
@options.json_option
def command(ranks, rates, models, steps, json_file):
    """Our DDP beside torch's and beside no communication: step time, exposed communication, peak memory."""
    from tqdm import tqdm

    from ringzero.launch.cluster import ClusterUnavailable

    try:
        made = rows(ranks, () if rates == "none" else rates.split(","), models.split(","), steps, tqdm)
    except (ClusterUnavailable, ValueError) as error:
        raise click.ClickException(str(error)) from None
    for each in made:
        click.echo(
            f"{each['name']:<30} {each['metric']:<28} {each['ours']:>8.1f} {each['unit']:<3} vs {each['peer']:>8.1f} "
            f"{each['peer_name']}: {each['ratio']:.2f}"
        )
    options.write(made, json_file)
