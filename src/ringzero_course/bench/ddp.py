"""Data-parallel training steps: ours, torch's DDP and no communication at all, taken in turns on the same ranks.

A step is forward, backward and an optimizer step, timed on its slowest rank. What it takes beyond the step that sends
nothing is exposed communication: what overlap could not hide. Peak memory is what the kernel counts as resident, at
its highest in three steps, beyond what the process held before the model was made; each in fresh ranks. On one
machine ours calms gloo's event threads (``collectives.event_threads``); torch's is measured as it comes.
"""

import statistics

from ringzero_course.bench import results, steps
from ringzero_course.bench.steps import RATES, WORLD_SIZES

MODELS = ("mlp", "transformer")
BUCKET_MIB = 4  # with torch's 25, models of this size would have two buckets and little to overlap
STEPS = 41


def rows(world_sizes=WORLD_SIZES, rates=RATES, models=MODELS, count=STEPS, progress=lambda cases: cases):
    """For each network and model: rows of step time, exposed communication and peak memory, ours beside torch's DDP."""
    for name, model, _, launch in steps.cases(world_sizes, rates, models, MODELS, progress):
        seconds = launch(step_seconds, model, count, timeout=600).returns[0]
        memory = {which: max(launch(peak_bytes, model, which).returns) for which in ("ours", "torch")}
        yield from _rows(name, seconds, memory)


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
    yield results.row(name, "step time", median["ours"], median["torch"], "torch DDP", "ms", paired)
    yield results.row(name, "exposed communication", exposed["ours"], exposed["torch"], "torch DDP", "ms")
    yield results.row(name, "step without communication", median["alone"], median["ours"], "ours", "ms")
    both = median["optimizer overlapped"], median["ours"]
    yield results.row(name, "optimizer overlapped", *both, "after", "ms", overlapped)
    yield results.row(name, "peak memory", mib["ours"], mib["torch"], "torch DDP", "MiB")


def step_seconds(model, count):
    """On each rank: ``{which: seconds of each step}``, of the slowest rank."""
    import torch.distributed as dist

    group = dist.new_group(backend="gloo")  # launch's own records, and torch's DDP does not take it
    trainers = {which: trainer(which, model, group) for which in ("ours", "optimizer overlapped", "torch", "alone")}
    return steps.seconds_in_turns(trainers, count, group, peers=("torch",))


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
        module = DistributedDataParallel(module, group=group, bucket_cap_mb=BUCKET_MIB, optimizer=optimizer)
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


HELP = "Our DDP beside torch's and beside no communication: step time, exposed communication, peak memory."
command = steps.command("ddp", HELP, rows, MODELS, STEPS)
