"""ZeRO stages 0 to 3 beside torch's own of the same kind, taken in turns on the same ranks.

A step is forward, backward and AdamW, timed on its slowest rank. Peak bytes are those of all live tensors at their
highest in a step (``record.memory``). Bytes of a kind are those after the backward pass, AdamW's step counts left
out. Communication is counted from the trace of one step: bytes each rank sends, beside 2, 2, 2 and 3 times the
parameters' bytes times (N-1)/N.
"""

import statistics

from ringzero.costs.page import memory
from ringzero_course.bench import results, steps
from ringzero_course.bench.steps import RATES, WORLD_SIZES

MODELS = {"small": (256, 4), "large": (512, 4)}  # width and layers: 3.2 and 12.6 million parameters
PEERS = ("torch DDP", "ZeroRedundancyOptimizer", "FSDP2, kept after forward", "FSDP2")  # by stage
BUCKET_MIB = 4
STEPS = 31


def rows(world_sizes=WORLD_SIZES, rates=RATES, models=tuple(MODELS), count=STEPS, progress=lambda cases: cases):
    """For each network, model and stage: rows of step time, peak bytes, bytes by kind and bytes sent."""
    for name, model, ranks, launch in steps.cases(world_sizes, rates, models, MODELS, progress):
        seconds = launch(step_seconds, model, count, timeout=600).returns[0]
        held = launch(peak_bytes, model, timeout=600).returns
        sent = launch(bytes_sent, model, timeout=600).returns
        for stage, peer in enumerate(PEERS):
            of_stage = [each[stage] for each in sent]
            yield from _rows(f"{name}, stage {stage}", stage, peer, seconds, held, of_stage, ranks)


def _rows(name, stage, peer, seconds, held, sent, ranks):
    ours, theirs = seconds[stage], seconds[peer]
    paired = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    median = statistics.median(ours) * 1e3, statistics.median(theirs) * 1e3
    peaks = [max(each[which][0] for each in held) / 2**20 for which in (stage, peer)]
    parts = [max(each[stage][1][kind] for each in held) for kind in ("parameters", "gradients", "optimizer")]
    params = held[0]["parameters"]
    formula = memory.model_state_parts(params, stage, ranks, memory.bytes_per_param("adamw", mixed_precision=False))
    elements = memory.communication_elements(params, stage, ranks)
    yield results.row(name, "step time", *median, peer, "ms", paired)
    yield results.row(name, "peak memory", *peaks, peer, "MiB")
    for kind, part, expected in zip(("parameters", "gradients", "optimizer"), parts, formula, strict=True):
        yield results.row(name, kind, part / 2**20, expected / 2**20, "formula", "MiB")
    yield results.row(name, "sent a step", statistics.mean(sent) / 2**20, 4 * elements / 2**20, "formula", "MiB")


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


def step_seconds(model, count):
    """On each rank: ``{stage or peer: seconds of each step}``, of the slowest rank."""
    import torch.distributed as dist

    group = dist.new_group(backend="gloo")  # launch's own records; torch's DDP does not take it
    trainers = {which: trainer(which, model, group)[0] for which in (*range(len(PEERS)), *PEERS)}
    return steps.seconds_in_turns(trainers, count, group, peers=PEERS)


def peak_bytes(model):
    """On each rank: ``{stage or peer: (peak, {kind: bytes after backward})}``, and under "parameters" their number."""
    import torch.distributed as dist

    from ringzero.record.memory import MemoryTimeline

    group, held = dist.new_group(backend="gloo"), {}
    for which in (*range(len(PEERS)), *PEERS):
        step, module, optimizer = trainer(which, model, group)
        for _ in range(2):  # after the first step states exist and buckets have their final order
            step()
        with MemoryTimeline(module, optimizer) as timeline:
            step(timeline.mark)
        held[which] = timeline.peak().total, timeline.at("backward").bytes
        counts = [value.nbytes for states in optimizer.state.values() for value in states.values() if not value.dim()]
        held[which][1]["optimizer"] -= sum(counts)
        del step, module, optimizer, timeline
    return held | {"parameters": sum(p.numel() for p in build(model)[0].parameters())}


def bytes_sent(model):
    """On each rank: bytes it sends in one step of each stage, counted from its records."""
    from ringzero.record import bytes_sent as count
    from ringzero.record import recorded

    sent = []
    for stage in range(len(PEERS)):
        step, *_ = trainer(stage, model, None)
        for _ in range(2):
            step()
        before = len(recorded())
        step()
        sent.append(count(recorded()[before:]))
    return sent


HELP = "ZeRO stages 0 to 3 beside torch's DDP, ZeroRedundancyOptimizer and FSDP2: time, bytes held, bytes sent."
command = steps.command("zero", HELP, rows, MODELS, STEPS)
