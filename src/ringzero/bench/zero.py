"""ZeRO stages 0 to 3 beside torch's own of the same kind, taken in turns on the same ranks.

A step is forward, backward and AdamW, timed on its slowest rank. Peak bytes are those of all live tensors at their
highest in a step, and of each kind after the backward pass (``ringzero.memory``). Communication is counted from the
trace of one step: bytes each rank sends, beside 2, 2, 2 and 3 times the parameters' bytes times (N-1)/N.
"""

import statistics
import time
from contextlib import nullcontext

import click

from ringzero.bench import options
from ringzero.bench.ddp import on_one_machine, row
from ringzero.costs import memory

RATES = ("200mbit", "1gbit")
WORLD_SIZES = (2, 4)
MODELS = {"small": (256, 4), "large": (512, 4)}  # width and layers: 3.2 and 12.6 million parameters
PEERS = ("torch DDP", "ZeroRedundancyOptimizer", "FSDP2, kept after forward", "FSDP2")  # by stage
BUCKET_MIB = 4
STEPS, WARM_UP, SECONDS = 31, 2, 40.0


def rows(world_sizes=WORLD_SIZES, rates=RATES, models=tuple(MODELS), steps=STEPS, progress=lambda cases: cases):
    """For each network, model and stage: rows of step time, peak bytes, bytes by kind and bytes sent."""
    from ringzero import launch
    from ringzero.launch.cluster import Cluster

    if unknown := set(models) - MODELS.keys():
        raise ValueError(f"models has {sorted(unknown)}; they are {', '.join(MODELS)}")
    networks = [(n, None) for n in world_sizes] + [(2, rate) for rate in rates]
    cases = [(*network, model) for network in networks for model in models]
    made = []
    for ranks, rate, model in progress(cases):
        with Cluster(nodes=ranks, ranks_per_node=1, inter_node=rate) if rate else nullcontext() as cluster:
            run = cluster.launch if rate else on_one_machine(launch, ranks)
            seconds = run(step_seconds, model, steps, timeout=600).returns[0]
            held = run(peak_bytes, model, timeout=600).returns
            sent = run(bytes_sent, model, timeout=600).returns
        where = f"{model}, {f'2 nodes at {rate}' if rate else f'{ranks} ranks'}"
        for stage, peer in enumerate(PEERS):
            made += _rows(f"{where}, stage {stage}", stage, peer, seconds, held, [each[stage] for each in sent], ranks)
    return made


def _rows(name, stage, peer, seconds, held, sent, ranks):
    ours, theirs = seconds[stage], seconds[peer]
    paired = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    median = statistics.median(ours) * 1e3, statistics.median(theirs) * 1e3
    peaks = [max(each[which][0] for each in held) / 2**20 for which in (stage, peer)]
    parts = [max(each[stage][1][kind] for each in held) for kind in ("parameters", "gradients", "optimizer")]
    params = held[0]["parameters"]
    formula = memory.model_state_parts(params, stage, ranks, memory.bytes_per_param("adamw", mixed_precision=False))
    elements = memory.communication_elements(params, stage, ranks)
    return [
        row(name, "step time", *median, peer, paired, "ms"),
        row(name, "peak memory", *peaks, peer, None, "MiB"),
        *(
            row(name, kind, part / 2**20, expected / 2**20, "formula", None, "MiB")
            for kind, part, expected in zip(("parameters", "gradients", "optimizer"), parts, formula, strict=True)
        ),
        row(name, "sent a step", statistics.mean(sent) / 2**20, 4 * elements / 2**20, "formula", None, "MiB"),
    ]


def trainer(which, model, group):
    """``(step, module, optimizer)`` of a stage (a number) or of a peer (its name); ``step(mark)`` trains one step."""
    import torch
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.optim import ZeroRedundancyOptimizer

    from ringzero.data_parallel import DistributedDataParallel
    from ringzero.zero import STAGES

    torch.manual_seed(0)
    module, batch = build(model)
    wrapped = module
    if which == 0:
        wrapped = DistributedDataParallel(module, group=group, bucket_cap_mb=BUCKET_MIB, algorithm="ring")
    elif which in STAGES:
        extra = {"units": list(module.layers)} if which == 3 else {"bucket_cap_mb": BUCKET_MIB}
        wrapped = STAGES[which](module, torch.optim.AdamW, lr=1e-4, group=group, **extra)
    elif which in ("torch DDP", "ZeroRedundancyOptimizer"):
        wrapped = torch.nn.parallel.DistributedDataParallel(module, process_group=group, bucket_cap_mb=BUCKET_MIB)
    else:
        mesh = DeviceMesh.from_group(group, "cpu")
        for layer in module.layers:
            fully_shard(layer, mesh=mesh, reshard_after_forward=which == "FSDP2")
        fully_shard(module, mesh=mesh, reshard_after_forward=which == "FSDP2")
    if which in STAGES:
        optimizer, update = wrapped.optimizer, wrapped
    elif which == "ZeroRedundancyOptimizer":
        kind = torch.optim.AdamW
        optimizer = ZeroRedundancyOptimizer(module.parameters(), kind, process_group=group, lr=1e-4)
        update = optimizer
    else:
        optimizer = update = torch.optim.AdamW(module.parameters(), lr=1e-4)

    def step(mark=lambda name: None):
        wrapped(batch).square().mean().backward()
        mark("backward")
        update.step()
        update.zero_grad()

    return step, module, optimizer


def build(model):
    """``(module, batch)``: a transformer encoder of ``MODELS[model]``, and 8 sequences of 32 vectors."""
    import torch
    from torch import nn

    width, layers = MODELS[model]
    block = nn.TransformerEncoderLayer(width, nhead=4, dim_feedforward=4 * width, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(block, num_layers=layers, enable_nested_tensor=False), torch.randn(8, 32, width)


def step_seconds(model, steps):
    """On each rank: ``{stage or peer: seconds of each step}``, of the slowest rank."""
    import torch
    import torch.distributed as dist

    group = dist.new_group(backend="gloo")  # launch's own records; torch's DDP does not take it
    names = [*range(len(PEERS)), *PEERS]
    trainers = {which: trainer(which, model, group)[0] for which in names}
    seconds, started = {which: [] for which in names}, time.monotonic()
    for number in range(-WARM_UP, steps):
        turn = number % len(names)
        for which in names[turn:] + names[:turn]:
            dist.barrier(group)
            start = time.perf_counter()
            trainers[which]()
            took = torch.tensor([time.perf_counter() - start, time.monotonic() - started], dtype=torch.float64)
            dist.all_reduce(took, op=dist.ReduceOp.MAX, group=group)
            if number >= 0:
                seconds[which].append(took[0].item())
        if number >= 4 and took[1] > SECONDS:
            break
    return seconds


def peak_bytes(model):
    """On each rank: ``{stage or peer: (peak, {kind: bytes after backward})}``, and under "parameters" their number."""
    import torch.distributed as dist

    from ringzero.memory import MemoryTimeline

    group, held = dist.new_group(backend="gloo"), {}
    for which in (*range(len(PEERS)), *PEERS):
        step, module, optimizer = trainer(which, model, group)
        for _ in range(2):  # the second has states, and buckets in their final order
            step()
        with MemoryTimeline(module, optimizer) as timeline:
            step(timeline.mark)
        held[which] = timeline.peak().total, timeline.at("backward").bytes
        del step, module, optimizer, timeline
    return held | {"parameters": sum(p.numel() for p in build(model)[0].parameters())}


def bytes_sent(model):
    """On each rank: bytes it sends in one step of each stage, counted from its records."""
    from ringzero.launch.trace import recorded

    sent = []
    for stage in range(len(PEERS)):
        step, *_ = trainer(stage, model, None)
        for _ in range(2):
            step()
        before = len(recorded())
        step()
        sent.append(sum(record["bytes"] for record in recorded()[before:] if record["kind"] == "send"))
    return sent


@click.command("zero")
@click.option("--ranks", default="2,4", show_default=True, callback=options.world_sizes, help="On this machine.")
@click.option("--rates", default=",".join(RATES), show_default=True, help='Between two nodes; "none" leaves them out.')
@click.option("--models", default=",".join(MODELS), show_default=True)
@click.option("--steps", default=STEPS, show_default=True, type=click.IntRange(min=1))
@options.json_option
def command(ranks, rates, models, steps, json_file):
    """ZeRO stages 0 to 3 beside torch's DDP, ZeroRedundancyOptimizer and FSDP2: time, bytes held, bytes sent."""
    from tqdm import tqdm

    from ringzero.launch.cluster import ClusterUnavailable

    try:
        made = rows(ranks, () if rates == "none" else rates.split(","), models.split(","), steps, tqdm)
    except (ClusterUnavailable, ValueError) as error:
        raise click.ClickException(str(error)) from None
    for each in made:
        click.echo(
            f"{each['name']:<32} {each['metric']:<12} {each['ours']:>8.1f} {each['unit']:<3} vs {each['peer']:>8.1f} "
            f"{each['peer_name']}: {each['ratio']:.2f}"
        )
    options.write(made, json_file)
