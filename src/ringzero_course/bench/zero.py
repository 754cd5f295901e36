"""ZeRO stages 0 to 3 beside torch's own of the same kind, taken in turns on the same ranks.

A step is forward, backward and AdamW, timed on its slowest rank. Peak bytes are those of all live tensors at their
highest in a step (``record.memory``). Bytes of a kind are those after the backward pass, AdamW's step counts left
out. Communication is counted from the trace of one step: bytes each rank sends, beside 2, 2, 2 and 3 times the
parameters' bytes times (N-1)/N.
"""

import statistics

from ringzero.costs.page import memory
from ringzero_course.bench import networks, runner, trainers

MODELS = {"small": (256, 4), "large": (512, 4)}  # width and layers: 3.2 and 12.6 million parameters
PEERS = ("torch DDP", "ZeroRedundancyOptimizer", "FSDP2, kept after forward", "FSDP2")  # by stage
KINDS = ("parameters", "gradients", "optimizer")
BUCKET_MIB = 4


def rows(ranks=(2, 4), rates=networks.RATES, models=tuple(MODELS), steps=31):
    """ZeRO stages 0 to 3 beside torch's DDP, ZeroRedundancyOptimizer and FSDP2: time, bytes held, bytes sent."""
    for name, model, n, launch in networks.on_networks(ranks, rates, models):
        seconds = launch(step_seconds, model, steps).returns[0]
        held = launch(peak_bytes, model).returns
        sent = launch(bytes_sent, model).returns
        for stage, peer in enumerate(PEERS):
            case = f"{name}, stage {stage}"
            yield runner.milliseconds(case, seconds[stage], seconds[peer], peer)
            peaks = [max(of_rank[which][0] for of_rank in held) / 2**20 for which in (stage, peer)]
            yield runner.row(case, "peak memory", *peaks, peer, "MiB")
            parameters = held[0]["parameters"]
            each = memory.bytes_per_param("adamw", mixed_precision=False)
            for kind, formula in zip(KINDS, memory.model_state_parts(parameters, stage, n, each), strict=True):
                largest = max(of_rank[stage][1][kind] for of_rank in held)
                yield runner.row(case, kind, largest / 2**20, formula / 2**20, "formula", "MiB")
            mean = statistics.mean(of_rank[stage] for of_rank in sent)
            formula = 4 * memory.communication_elements(parameters, stage, n)
            yield runner.row(case, "sent a step", mean / 2**20, formula / 2**20, "formula", "MiB")


def trainer(which, model, group):
    """``(step, module, optimizer)`` of a stage (a number) or of a peer (its name); ``step(mark)`` trains one step."""
    import torch

    torch.manual_seed(0)
    module, batch = build(model)
    wrapped, optimizer = (_ours if isinstance(which, int) else _torchs)(which, module, group)
    update = optimizer if optimizer is not None else wrapped

    def step(mark=lambda name: None):
        wrapped(batch).square().mean().backward()
        mark("backward")
        update.step()
        update.zero_grad()

    return step, module, update if optimizer is not None else wrapped.optimizer


def _ours(stage, module, group):
    """``(wrapped, optimizer)``; a stage of ZeRO has an optimizer of its own, and None."""
    import torch

    from ringzero.data_parallel import DistributedDataParallel
    from ringzero.zero import STAGES

    if stage == 0:
        wrapped = DistributedDataParallel(module, group=group, bucket_cap_mb=BUCKET_MIB, algorithm="ring")
        return wrapped, torch.optim.AdamW(module.parameters(), lr=1e-4)
    parts = {"units": list(module.layers)} if stage == 3 else {"bucket_cap_mb": BUCKET_MIB}
    return STAGES[stage](module, torch.optim.AdamW, lr=1e-4, group=group, **parts), None


def _torchs(which, module, group):
    import torch
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.optim import ZeroRedundancyOptimizer

    kind, wrapped = torch.optim.AdamW, module
    if which.startswith("FSDP2"):
        mesh = DeviceMesh.from_group(group, "cpu")
        for each in (*module.layers, module):
            fully_shard(each, mesh=mesh, reshard_after_forward=which == "FSDP2")
    else:
        wrapped = torch.nn.parallel.DistributedDataParallel(module, process_group=group, bucket_cap_mb=BUCKET_MIB)
    if which == "ZeroRedundancyOptimizer":
        return wrapped, ZeroRedundancyOptimizer(module.parameters(), kind, process_group=group, lr=1e-4)
    return wrapped, kind(module.parameters(), lr=1e-4)


def build(model):
    """``(module, batch)``: a transformer encoder of ``MODELS[model]``, and 8 sequences of 32 vectors."""
    import torch

    width, layers = MODELS[model]
    return trainers.encoder(width, layers), torch.randn(8, 32, width)


def step_seconds(model, steps):
    """On each rank: ``{stage or peer: seconds of each step}``, of the slowest rank."""
    import torch.distributed as dist

    group = dist.new_group(backend="gloo")  # launch's own records; torch's DDP does not take it
    made = {which: trainer(which, model, group)[0] for which in (*range(len(PEERS)), *PEERS)}
    return trainers.seconds_in_turns(made, steps, group, peers=PEERS)


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

    return [count(trainers.records_of(trainer(stage, model, None)[0])) for stage in range(len(PEERS))]


command = runner.command(rows, **networks.of_models(MODELS))
