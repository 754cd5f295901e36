"""One plan to train a transformer on a cluster: does it fit, how long is a step, where does the time go?

Closed forms of what ``systems`` and ``run`` do task by task, so that thousands of plans are priced in a second;
``tests/steps/test_planner.py`` holds one against the other. Tensor parallelism and sequence parallelism go together,
as in Megatron (Korthikanti et al. 2022); pipelines are 1F1B, interleaved where a rank has several pieces of the model
(Narayanan et al. 2021).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import NamedTuple

from ringzero.costs import pipeline
from ringzero.costs.page import hardware, memory
from ringzero.steps.machine import ADAM_BYTES, HOST_BANDWIDTH, Machine, of_gpus
from ringzero.steps.transformer import Transformer

BF16, FP32, OPTIMIZER = 2, 4, 12  # bytes a parameter: as computed with; master, and two moments


@dataclass(frozen=True)
class Cluster:
    """``nodes`` of ``gpus_per_node`` GPUs, each with an ``infiniband`` port.

    ``reached``  the share of peak FLOP/s that products of a layer's size reach
    ``moved``    bytes of memory that a layer's norms, activations and attention read and write for each token and unit
                 of width, forward and backward: some hundreds with kernels that do several operations at once, a
                 thousand without
    ``fabric``   the share of the links' bandwidth that collectives reach
    ``usable``   the share of a GPU's memory that training may take; the rest is CUDA's, NCCL's, and gaps
    ``dollars``  a GPU-hour

    Raises ValueError for numbers that no cluster has.
    """

    gpu: str
    nodes: int
    gpus_per_node: int = 8
    infiniband: str = "NDR"
    reached: float = 0.62
    moved: float = 250
    fabric: float = 0.8
    usable: float = 0.92
    dollars: float = 2.0

    def __post_init__(self) -> None:
        for name in ("nodes", "gpus_per_node"):
            if isinstance(value := getattr(self, name), bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}; give a whole number, 1 or more")
        for name in ("reached", "fabric", "usable"):
            if not 0 < (value := getattr(self, name)) <= 1:
                raise ValueError(f"{name} is {value!r}; give a share, above 0 and up to 1")
        for name in ("moved", "dollars"):
            if not 0 <= (value := getattr(self, name)) < inf:
                raise ValueError(f"{name} is {value!r}; give a number, 0 or more")

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_per_node

    @property
    def memory_bytes(self) -> float:
        return hardware.gpu(self.gpu)["memory_gb"] * 1e9 * self.usable

    def group(self, size: int, in_node: int) -> Machine:
        """``size`` GPUs, ``in_node`` of them in each node they are in, as a machine of their own."""
        in_node = min(size, in_node)
        return of_gpus(self.gpu, ceil(size / in_node), in_node, self.infiniband, self.reached, self.fabric)


class Plan(NamedTuple):
    """``data`` x ``tensor`` x ``pipeline`` GPUs.

    ``stage``          of ZeRO among the ``data`` ranks; ``hybrid``: inside nodes only, replicated across (HSDP)
    ``virtual``        pieces of the model that each rank of a pipeline has
    ``micro_batch``    sequences
    ``recomputation``  "none", "selective" or "full"
    ``offload``        masters and optimizer states are in the host's memory, which steps them
    ``bucket_mib``     of gradients that travel together; in stage 3 those of a layer do
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    stage: int = 1
    hybrid: bool = False
    virtual: int = 1
    micro_batch: int = 1
    recomputation: str = "none"
    offload: bool = False
    bucket_mib: float = 25

    def __str__(self) -> str:
        parts = [f"ZeRO-{self.stage}{', hybrid' * self.hybrid}" if self.stage else "DDP"]
        parts += [f"data {self.data}"]
        parts += [f"tensor {self.tensor}"] * (self.tensor > 1)
        parts += [f"pipeline {self.pipeline}{f' x {self.virtual}' * (self.virtual > 1)}"] * (self.pipeline > 1)
        parts += [f"micro-batch {self.micro_batch}", f"{self.recomputation} recomputed"]
        parts += ["offloaded"] * self.offload
        return ", ".join([*parts, *[f"buckets of {self.bucket_mib:g} MiB"] * (self.data > 1 and self.stage < 3)])


class Estimate(NamedTuple):
    """``memory`` is ``{part: bytes of the fullest GPU}``, ``time`` ``{part: seconds of a step}``, which add up.

    ``mfu`` counts model FLOPs; ``dollars`` is of one step.
    """

    plan: Plan
    memory: dict[str, float]
    time: dict[str, float]
    mfu: float
    dollars: float

    @property
    def bytes(self) -> float:
        return sum(self.memory.values())

    @property
    def seconds(self) -> float:
        return sum(self.time.values())


def micro_batches(plan: Plan, batch: int) -> int:
    """Of a step of ``batch`` sequences, on each rank."""
    return batch // (plan.data * plan.micro_batch)


def estimate(model: Transformer, cluster: Cluster, batch: int, plan: Plan) -> Estimate:
    """Memory and time of a step of ``batch`` sequences. The plan must be possible: see ``planner.why_not``."""
    return with_fastest_bucket(model, cluster, batch, plan, [plan.bucket_mib])


def with_fastest_bucket(model: Transformer, cluster: Cluster, batch: int, plan: Plan, mib: Sequence[float]) -> Estimate:
    """As ``estimate``, of the plan with those buckets that make its step the shortest: the memory is the same."""
    plans = [plan._replace(bucket_mib=size) for size in mib]
    passes, forward, backward = _passes(model, cluster, batch, plan)
    times = [passes | _data(model, cluster, each, micro_batches(plan, batch), forward, backward) for each in plans]
    seconds, fastest = min((sum(time.values()), index) for index, time in enumerate(times))
    mfu = model.model_flops(batch) / (seconds * cluster.gpus * hardware.peak_flops(cluster.gpu))
    held = _memory(model, cluster, batch, plan)
    return Estimate(plans[fastest], held, times[fastest], mfu, seconds / 3600 * cluster.gpus * cluster.dollars)


def _stages(model: Transformer, plan: Plan) -> tuple[int, int]:
    """Layers of a full stage, and of the last one, which also has the head."""
    full = ceil(model.layers / plan.pipeline)
    return full, model.layers - full * (plan.pipeline - 1)


def _shards(cluster: Cluster, plan: Plan) -> int:
    """Among how many ranks ZeRO's shards lie."""
    return min(plan.data, max(1, cluster.gpus_per_node // plan.tensor)) if plan.hybrid else plan.data


def _elements(model: Transformer, plan: Plan) -> float:
    """Of the parameters of the fullest rank, before ZeRO. Experts are spread over the ``data`` ranks, too."""
    layers, _ = _stages(model, plan)
    layer = model.layer_parameters + model.experts_parameters * (1 / min(plan.data, model.experts) - 1)
    ends = model.vocab * model.hidden * (2 if plan.pipeline == 1 else 1)
    return (layers * layer + ends) / plan.tensor


def _memory(model: Transformer, cluster: Cluster, batch: int, plan: Plan) -> dict[str, float]:
    elements, shards, count = _elements(model, plan), _shards(cluster, plan), micro_batches(plan, batch)
    layers, last = _stages(model, plan)
    gradient = FP32 if count > 1 else BF16
    parameters, gradients, optimizer = memory.model_state_parts(
        elements, plan.stage, shards, (BF16, gradient, OPTIMIZER)
    )
    in_flight = pipeline.micro_batches_kept(plan.pipeline, count, virtual_stages=plan.virtual)
    tokens = plan.micro_batch * model.sequence
    width = model.active * model.ffn * (1.5 if model.gated else 1) / (4 * model.hidden)  # beside an MLP of 4h

    def kept(recomputation: str) -> float:
        """Bytes of a layer's activations. What the MLP keeps goes with its width."""
        shape = tokens, model.sequence, model.hidden, model.heads
        rows = memory.layer_activations(*shape, recomputation=recomputation, flash_attention=True, dropout=False)
        return sum(size * (width if "GELU" in name else 1) for name, size, _ in rows) / plan.tensor

    activations = kept(plan.recomputation) * layers * in_flight
    if plan.recomputation == "full":
        activations += kept("none")  # of the layer that is computed again
    logits = memory.output_activation_bytes(tokens, model.hidden, model.vocab, plan.tensor, plan.tensor > 1)
    if plan.pipeline > 1 and last < layers:
        logits = max(0.0, logits - kept(plan.recomputation) * (layers - last))  # the last stage has fewer layers
    held = {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": 0.0 if plan.offload else optimizer,
        "activations": activations + logits,
    }
    if plan.stage == 3:
        held["gathered layers"] = memory.gathered_layer_bytes(elements / layers)
    return held


def _passes(model: Transformer, cluster: Cluster, batch: int, plan: Plan) -> tuple[dict[str, float], float, float]:
    """Seconds of a step's parts that no bucket changes; and of a micro-batch's forward and backward pass."""
    count, b = micro_batches(plan, batch), plan.micro_batch
    layers, last = _stages(model, plan)
    gpu = cluster.group(1, 1)
    moved = b * model.sequence * model.hidden * cluster.moved / 3 / gpu.memory_bandwidth
    forward = (model.layer_flops(b) / gpu.flops + moved) / plan.tensor  # of a layer
    again = {"none": 0.0, "selective": 0.0, "full": forward}[
        plan.recomputation
    ]  # flash attention recomputes in any case
    head = model.head_flops(b) / plan.tensor / gpu.flops
    stage = max(layers * (3 * forward + again), last * (3 * forward + again) + 3 * head)
    backward = layers * (2 * forward + again)

    size = b * model.sequence * model.hidden * BF16
    tensor = 0.0
    if plan.tensor > 1:  # after attention and after the MLP, forward and backward, and where forward runs again
        group = cluster.group(plan.tensor, cluster.gpus_per_node)
        tensor = (
            layers * (4 + 2 * (again > 0)) * (group.seconds("reduce_scatter", size) + group.seconds("all_gather", size))
        )
    experts = 0.0
    if model.experts > 1 and plan.data > 1:
        group = _data_group(cluster, plan, min(plan.data, model.experts))
        experts = layers * (4 + 2 * (again > 0)) * group.seconds("all_to_all", size * (model.active - 1) / plan.tensor)
    message = 0.0
    if plan.pipeline > 1:
        message = cluster.group(2, 1).message_seconds(size / plan.tensor, "nodes")
    a_micro_batch = stage + tensor + experts
    bubble = pipeline.bubble_over_ideal(plan.pipeline, count, plan.virtual) * count * (a_micro_batch + 2 * message)
    parts = {
        "computing": count * stage,
        "tensor parallel": count * tensor,
        "experts": count * experts,
        "pipeline": bubble,
    }
    return parts, layers * forward, backward


def _data_group(cluster: Cluster, plan: Plan, size: int) -> Machine:
    """Ranks that differ in their data are next to each other, but for those of tensor parallelism."""
    return cluster.group(size, max(1, cluster.gpus_per_node // plan.tensor))


def _data(
    model: Transformer, cluster: Cluster, plan: Plan, count: int, forward: float, backward: float
) -> dict[str, float]:
    """Seconds that gradients and parameters add to a step, beyond what hides behind the passes; and the optimizer's."""
    layers, _ = _stages(model, plan)
    elements, shards = _elements(model, plan), _shards(cluster, plan)
    gradients, parameters = elements * (FP32 if count > 1 else BF16), elements * BF16
    group, exposed = _data_group(cluster, plan, shards), 0.0
    pieces = layers if plan.stage == 3 else ceil(gradients / (plan.bucket_mib * 2**20))

    def beside(computation: float, *travels: tuple[Machine, str, float]) -> float:
        seconds = sum(pieces * machine.seconds(name, size / pieces) for machine, name, size in travels)
        return beyond(seconds, computation, pieces)

    if plan.data > shards:
        exposed += beside(backward, (cluster.group(plan.data // shards, 1), "all_reduce", gradients / shards))
    if shards > 1:
        reduce, gather = (group, "reduce_scatter", gradients), (group, "all_gather", parameters)
        if plan.stage == 0:
            exposed += beside(backward, (group, "all_reduce", gradients))
        elif plan.stage == 3:
            exposed += count * (beside(forward, gather) + beside(backward, gather, reduce))
        else:
            times = 1 if plan.stage == 1 else count  # whole gradients add up; shards are reduced in every micro-batch
            exposed += times * beside(backward, reduce) + beside(forward, gather)
    own = elements / (shards if plan.stage else 1)
    if not plan.offload:
        return {"data parallel": exposed, "optimizer": own * ADAM_BYTES / group.memory_bandwidth}
    copies = max(own * FP32, own * BF16) / group.copies
    host = own * ADAM_BYTES * cluster.gpus_per_node / HOST_BANDWIDTH
    return {"data parallel": exposed, "optimizer": max(copies, host)}


def beyond(communication: float, computation: float, pieces: int) -> float:
    """What of ``communication`` in equal ``pieces`` does not hide: the piece that comes last, and what is too much."""
    return max(communication / pieces, communication - computation * (pieces - 1) / pieces)
