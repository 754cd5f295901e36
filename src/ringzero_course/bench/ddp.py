"""Data-parallel training steps: ours, torch's DDP and no communication at all, taken in turns on the same ranks.

A step is forward, backward and an optimizer step, timed on its slowest rank. What it takes beyond the step that sends
nothing is exposed communication: what overlap could not hide. Peak memory is what the kernel counts as resident, at
its highest in three steps, beyond what the process held before the model was made; each in fresh ranks. On one
machine ours calms gloo's event threads (``collectives.event_threads``); torch's is measured as it comes.
"""

import statistics

from ringzero_course.bench import networks, runner, trainers

MODELS = ("mlp", "transformer")
BUCKET_MIB = 4  # with torch's 25, models of this size would have two buckets and little to overlap


def rows(ranks=(2, 4), rates=networks.RATES, models=MODELS, steps=41):
    """Our DDP beside torch's and beside no communication: step time, exposed communication, peak memory."""
    for name, model, _, launch in networks.on_networks(ranks, rates, models):
        seconds = launch(step_seconds, model, steps).returns[0]
        memory = [max(launch(peak_bytes, model, which).returns) / 2**20 for which in ("ours", "torch")]
        ours, alone = seconds["ours"], seconds["alone"]
        exposed = [
            statistics.median(a - b for a, b in zip(seconds[which], alone, strict=True)) * 1e3
            for which in ("ours", "torch")
        ]
        yield runner.milliseconds(name, ours, seconds["torch"], "torch DDP")
        yield runner.row(name, "exposed communication", *exposed, "torch DDP", "ms")
        yield runner.milliseconds(name, alone, ours, "ours", "step without communication")
        yield runner.milliseconds(name, seconds["optimizer overlapped"], ours, "after", "optimizer overlapped")
        yield runner.row(name, "peak memory", *memory, "torch DDP", "MiB")


def step_seconds(model, steps):
    """On each rank: ``{which: seconds of each step}``, of the slowest rank."""
    import torch.distributed as dist

    group = dist.new_group(backend="gloo")  # launch's own records, and torch's DDP does not take it
    made = {which: trainer(which, model, group) for which in ("ours", "optimizer overlapped", "torch", "alone")}
    return trainers.seconds_in_turns(made, steps, group, peers=("torch",))


def trainer(which, model, group):
    """A function that makes one training step: "ours", "optimizer overlapped", "torch" or "alone"."""
    import torch

    from ringzero.data_parallel import DistributedDataParallel

    torch.manual_seed(0)
    module, batch = build(model)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4)
    overlapped = which == "optimizer overlapped"
    if which == "torch":
        module = torch.nn.parallel.DistributedDataParallel(module, process_group=group, bucket_cap_mb=BUCKET_MIB)
    elif which != "alone":
        stepped = optimizer if overlapped else None
        module = DistributedDataParallel(module, group=group, bucket_cap_mb=BUCKET_MIB, optimizer=stepped)

    def step_once():
        optimizer.zero_grad()
        module(batch).square().mean().backward()
        if not overlapped:
            optimizer.step()

    return step_once


def build(model):
    """``(module, batch)``: about 12.6 MB of gradients, in 24 even tensors (mlp) or in uneven ones (transformer)."""
    import torch
    from torch import nn

    if model == "mlp":
        layers = [nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(12)]
        return nn.Sequential(*layers), torch.randn(512, 512)
    return trainers.encoder(256, 4), torch.randn(8, 64, 256)


def peak_bytes(model, which):
    """On each rank: resident bytes at their highest, beyond what there was before the model."""
    import torch.distributed as dist

    group = dist.new_group(backend="gloo")
    dist.barrier(group)
    before = _resident("VmRSS")
    step = trainer(which, model, group)
    for _ in range(3):
        step()
    return _resident("VmHWM") - before


def _resident(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field + ":"))


command = runner.command(rows, **networks.of_models(MODELS))
