"""Which plan? All that a cluster could do with a model and a batch, ranked by time, and why the rest is out."""

from collections.abc import Iterator
from itertools import product
from math import ceil
from typing import NamedTuple

from ringzero.steps.plan import Cluster, Estimate, Plan, estimate, micro_batches, with_fastest_bucket
from ringzero.steps.transformer import Transformer

MICRO_BATCHES = (1, 2, 4, 8)
VIRTUAL = (1, 2, 4)
BUCKETS = (25, 100, 400)  # MiB
GB = 1e9


class Ranking(NamedTuple):
    """``fitting`` plans, the fastest first; ``too_large`` ones, the smallest first; ``tried``: how many in all."""

    fitting: list[Estimate]
    too_large: list[Estimate]
    tried: int


def plans(model: Transformer, cluster: Cluster, batch: int) -> Iterator[Plan]:
    """Every plan that ``why_not`` lets pass."""
    tensors = [t for t in divisors(cluster.gpus_per_node) if model.heads % t == 0]
    pipelines = [p for p in divisors(cluster.gpus) if p <= model.layers]
    for tensor, pipeline in product(tensors, pipelines):
        data, rest = divmod(cluster.gpus, tensor * pipeline)
        if rest:
            continue
        stages = (
            ((0, False), (1, False)) if pipeline > 1 else ((0, False), (1, False), (2, False), (3, False), (3, True))
        )
        virtuals = VIRTUAL if pipeline > 1 else (1,)
        for (stage, hybrid), b, virtual, recomputation, offload in product(
            stages if data > 1 else ((0, False),), MICRO_BATCHES, virtuals, ("none", "full"), (False, True)
        ):
            plan = Plan(data, tensor, pipeline, stage, hybrid, virtual, b, recomputation, offload)
            if why_not(model, cluster, batch, plan) is None:
                yield plan


def why_not(model: Transformer, cluster: Cluster, batch: int, plan: Plan) -> str | None:
    """Why a plan cannot be, whatever the memory; None if it can."""
    gpus = plan.data * plan.tensor * plan.pipeline
    if gpus != cluster.gpus:
        return f"{plan.data} x {plan.tensor} x {plan.pipeline} are {gpus} GPUs, and the cluster has {cluster.gpus}"
    if plan.tensor > cluster.gpus_per_node:
        return f"tensor parallel over {plan.tensor} GPUs would leave the node of {cluster.gpus_per_node}"
    if model.heads % plan.tensor:
        return f"{model.heads} heads cannot be divided among {plan.tensor} GPUs; give a divisor of {model.heads}"
    if plan.pipeline > model.layers:
        return f"{plan.pipeline} stages for {model.layers} layers"
    if ceil(model.layers / plan.pipeline) * (plan.pipeline - 1) >= model.layers:
        return f"{model.layers} layers in {plan.pipeline} stages would leave the last one empty"
    if plan.pipeline * plan.virtual > model.layers:
        return f"{plan.pipeline} x {plan.virtual} pieces for {model.layers} layers"
    if batch % (plan.data * plan.micro_batch):
        return f"a batch of {batch} cannot be divided into micro-batches of {plan.micro_batch} for {plan.data} ranks"
    if plan.virtual > 1 and micro_batches(plan, batch) % plan.pipeline:
        return f"an interleaved pipeline takes its {micro_batches(plan, batch)} micro-batches {plan.pipeline} at a time"
    if plan.stage > 1 and plan.pipeline > 1:
        return "a pipeline's micro-batches add up gradients, and ZeRO-2 and 3 would reduce them for each"
    if plan.hybrid and plan.data <= max(1, cluster.gpus_per_node // plan.tensor):
        return "all data-parallel ranks are in one node: nothing to replicate across nodes"
    return None


def rank(model: Transformer, cluster: Cluster, batch: int) -> Ranking:
    """Price every plan. Raises ValueError for a batch that no plan can divide, or that is no number of sequences."""
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise ValueError(f"batch is {batch!r}; give a whole number of sequences, 1 or more")
    fitting: list[Estimate] = []
    too_large: list[Estimate] = []
    room = cluster.memory_bytes
    for plan in plans(model, cluster, batch):
        buckets = BUCKETS if plan.data > 1 and plan.stage < 3 else BUCKETS[:1]
        found = with_fastest_bucket(model, cluster, batch, plan, buckets)
        (fitting if found.bytes <= room else too_large).append(found)
    tried = len(fitting) + len(too_large)
    if not tried:
        raise ValueError(
            f"no way to divide a batch of {batch} sequences among {cluster.gpus} GPUs; give a larger batch, with more "
            "factors of two"
        )
    fitting.sort(key=lambda each: (each.seconds, each.bytes))
    too_large.sort(key=lambda each: each.bytes)
    return Ranking(fitting, too_large, tried)


def best_of_each(ranking: Ranking) -> list[Estimate]:
    """Of each way to divide the work, the fastest plan: the others differ in tensor, pipeline, stage or hybrid."""
    seen, best = set(), []
    for each in ranking.fitting:
        key = each.plan.tensor, each.plan.pipeline, each.plan.stage, each.plan.hybrid
        if key not in seen:
            seen.add(key)
            best.append(each)
    return best


def verdict(model: Transformer, cluster: Cluster, batch: int, plan: Plan, best: Estimate) -> str:
    """One sentence: why this plan is not the best one."""
    if reason := why_not(model, cluster, batch, plan):
        return reason
    found = estimate(model, cluster, batch, plan)
    if found.bytes > cluster.memory_bytes:
        part = max(found.memory, key=lambda name: found.memory[name])
        return (
            f"needs {found.bytes / GB:.0f} GB, and of a GPU's {cluster.memory_bytes / cluster.usable / GB:.0f} GB "
            f"{cluster.memory_bytes / GB:.0f} can be used; {found.memory[part] / GB:.0f} GB of it are {part}"
        )
    if found.seconds <= best.seconds:
        return "as fast"
    part = max(found.time, key=lambda name: found.time[name] - best.time[name])
    return (
        f"{found.seconds / best.seconds - 1:.0%} slower: {found.time[part]:.2f} s instead of {best.time[part]:.2f} s "
        f"of {part}"
    )


def neighbours(plan: Plan, cluster: Cluster) -> dict[str, Plan]:
    """Plans that differ from ``plan`` in one decision: what one would ask about first."""

    def with_degrees(tensor: int, pipeline: int) -> Plan:
        data = max(1, cluster.gpus // (tensor * pipeline))
        stage = min(plan.stage, 1) if pipeline > 1 else plan.stage
        return plan._replace(
            tensor=tensor, pipeline=pipeline, data=data, stage=stage, virtual=plan.virtual if pipeline > 1 else 1
        )

    asked = {
        "half the tensor parallelism": with_degrees(max(1, plan.tensor // 2), plan.pipeline),
        "twice the tensor parallelism": with_degrees(plan.tensor * 2, plan.pipeline),
        "half the pipeline": with_degrees(plan.tensor, max(1, plan.pipeline // 2)),
        "twice the pipeline": with_degrees(plan.tensor, plan.pipeline * 2),
        "no ZeRO": plan._replace(stage=0, hybrid=False),
        "ZeRO-3": plan._replace(stage=3, hybrid=False),
        "HSDP": plan._replace(stage=3, hybrid=True),
        "half the micro-batch": plan._replace(micro_batch=max(1, plan.micro_batch // 2)),
        "twice the micro-batch": plan._replace(micro_batch=plan.micro_batch * 2),
        "nothing recomputed": plan._replace(recomputation="none"),
        "everything recomputed": plan._replace(recomputation="full"),
        "offloaded": plan._replace(offload=True),
    }
    return {question: other for question, other in asked.items() if other != plan}


def divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]
