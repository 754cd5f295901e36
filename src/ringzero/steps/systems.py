"""The training steps of the book as tasks: data parallelism, ZeRO, offloading, tensor and pipeline parallelism.

Each function returns a ``Step``; ``run(step)`` gives it times. Ranks that do the same are drawn once, as rank 0. Sizes
are in bytes of ``element`` bytes each, as gradients and parameters travel.
"""

from collections import defaultdict
from collections.abc import Sequence

from ringzero.costs.page import memory
from ringzero.steps.machine import Machine
from ringzero.steps.passes import WHOLE, Gathers, backward_pass, collective, forward_pass
from ringzero.steps.task import ARRIVING, COMPUTE, COPY, HOST, NETWORK, Step
from ringzero.steps.unit import Bucket, Unit, buckets, one_bucket, one_each

MIB = 2**20


def data_parallel(
    units: Sequence[Unit],
    machine: Machine,
    *,
    how: str = "bucketed",
    bucket_bytes: float = 25 * MIB,
    element: float = 4,
) -> Step:
    """One all-reduce of all gradients.

    ``how``  "naive": each tensor at once, and waited for; "flat": all together after the backward pass; "bucketed":
             in buckets of ``bucket_bytes`` that leave during it

    Raises ValueError for another ``how``.
    """
    cuts = {"naive": _one_tensor_each, "flat": one_bucket, "bucketed": lambda u: buckets(u, bucket_bytes, element)}
    if how not in cuts:
        raise ValueError(f"how is {how!r}; it is one of {', '.join(cuts)}")
    step, cut = Step(f"data parallel, {how}", base=_states(units, element)), cuts[how](units)
    last = forward_pass(step, units)
    came: list[tuple[Bucket, int]] = []

    def leave(bucket: Bucket, after: int) -> int:
        size = bucket.elements * element
        meets = how == "naive" and (not came or came[-1][0].last != bucket.last)  # the rest of a unit comes with it
        number = collective(
            step, machine, "all_reduce", size, late=meets * machine.meeting, after=[after], name=f"bucket {len(came)}"
        )
        came.append((bucket, number))
        return number

    last = backward_pass(step, units, cut, leave, last, machine, element, waits_for=0 if how == "naive" else None)
    for bucket, number in came:
        seconds = machine.adam_seconds(bucket.elements)
        step.add("optimizer", 0, "compute", COMPUTE, seconds, after=[number, came[-1][1]], name="of a bucket")
    return step


def zero(
    units: Sequence[Unit],
    machine: Machine,
    stage: int,
    *,
    bucket_bytes: float = 25 * MIB,
    prefetch: int = 1,
    element: float = 4,
    hybrid: bool = False,
    offload: bool = False,
) -> Step:
    """ZeRO. Stages 1 and 2 cut vectors as buckets; in stage 3 each unit is one, gathered ``prefetch`` units ahead.

    ``hybrid``   shards lie inside a node, and are all-reduced across nodes: HSDP
    ``offload``  gradients go to the host once they are reduced, which steps them and copies the parameters back

    Raises ValueError for a stage that is not 1, 2 or 3.
    """
    if stage not in (1, 2, 3):
        raise ValueError(f"stage is {stage!r}; ZeRO has stages 1, 2 and 3")
    group = "node" if hybrid else "all"
    shards = machine.group_size(group)
    held = _states(units, element, stage, shards, offload)
    step = Step(f"ZeRO-{stage}" + ", hybrid" * hybrid + ", offloaded" * offload, base=held)
    gathers = Gathers(step, units, machine, group, element, prefetch) if stage == 3 else WHOLE
    last = forward_pass(step, units, gathers)
    reduced: list[tuple[Bucket, int]] = []

    def leave(bucket: Bucket, after: int) -> int:
        size, name = bucket.elements * element, f"vector {len(reduced)}"
        frees = size if stage > 1 else 0.0
        shard = 2 * size / shards if stage > 1 and not offload else 0.0  # it is copied out of what is freed
        number = collective(
            step, machine, "reduce_scatter", size, group, copied=shard, after=[after], name=name, frees=frees
        )
        if hybrid:
            number = collective(step, machine, "all_reduce", size / shards, "nodes", after=[number], name=name)
        if offload:
            seconds = size / shards / machine.copies
            number = step.add("to_host", 0, "network", COPY, seconds, after=[number], name=name)
        reduced.append((bucket, number))
        return number

    cut = one_each(units) if stage == 3 else buckets(units, bucket_bytes, element)
    in_flight = None if stage == 1 else 1
    last = backward_pass(
        step, units, cut, leave, last, machine, element, in_flight, gathers, holds_gradients=stage > 1
    )  # fmt: skip
    after = [last, *(number for _, number in reduced)]
    ready = [_optimizer(step, machine, bucket.elements / shards, element, offload, after) for bucket, _ in reduced]
    if stage < 3:  # each vector is gathered once it is here and the last one is stepped
        for (bucket, _), (_, here) in zip(reduced, ready, strict=True):
            size = bucket.elements * element
            collective(step, machine, "all_gather", size, group, after=[here, ready[-1][0]])
    return step


def tensor_parallel(units: Sequence[Unit], machine: Machine, *, group: str = "node", element: float = 4) -> Step:
    """Each unit's products are cut among the ranks of ``group``, which all-reduce its output twice.

    That is Megatron's: after the attention and after the MLP, and in the backward pass as often. The next product needs
    the sum, so nothing hides it. Units' seconds are those of one rank with the whole layer.
    """
    degree = machine.group_size(group)
    step = Step("tensor parallel", base=_states(units, element) / degree)
    last: int | None = None
    for way, order in (("forward", units), ("backward", units[::-1])):
        for unit in order:
            for _ in range(2):
                seconds = getattr(unit, way) / degree / 2
                last = step.add(way, 0, "compute", COMPUTE, seconds, after=[last], name=unit.name)
                last = collective(step, machine, "all_reduce", unit.output, group, after=[last])
    return step


def pipeline(
    stages: Sequence[Sequence[Unit]],
    machine: Machine,
    micro_batches: int,
    *,
    schedule: str = "1f1b",
    group: str = "nodes",
) -> Step:
    """Rank i has the units of ``stages[i]`` and hands activations to rank i + 1. Memory is that of activations alone.

    ``schedule``  "gpipe": all forward passes, then all backward passes (Huang et al., NeurIPS 2019). "1f1b": after as
                  many forward passes as there are stages behind it, a rank takes turns (Narayanan et al., SC 2021)

    Raises ValueError for another schedule, no stage, or no micro-batch.
    """
    if schedule not in ("gpipe", "1f1b") or micro_batches < 1 or not stages:
        raise ValueError(
            f"schedule is {schedule!r}, with {micro_batches} micro-batches and {len(stages)} stages; give 'gpipe' or "
            "'1f1b', and at least one of each"
        )
    step, count = Step(f"pipeline, {schedule}"), len(stages)
    meetings: dict[tuple, int] = defaultdict(step.meeting)  # of a stage, a way and a micro-batch that arrives there

    def message(kind: str, rank: int, peer: int, way: str, m: int, after: int | None = None) -> int:
        sender, receiver = (rank, peer) if kind == "send" else (peer, rank)
        size = stages[min(sender, receiver)][-1].output  # an activation, or its gradient
        return step.add(
            kind, rank, f"{kind}, {way}", NETWORK if kind == "send" else ARRIVING,
            machine.message_seconds(size, group), after=[after], name=f"micro-batch {m}",
            meeting=meetings[receiver, way, m], bytes=int(size), peer=peer,
        )  # fmt: skip

    for rank, units in enumerate(stages):
        forwards: dict[int, int] = {}
        part = _together(units)
        for way, m in one_stage_order(schedule, rank, count, micro_batches):
            after, onward = (rank - 1, rank + 1) if way == "forward" else (rank + 1, rank - 1)
            came = message("recv", rank, after, way, m) if 0 <= after < count else None
            number = step.add(
                way, rank, "compute", COMPUTE, getattr(part, way), after=[came, forwards.get(m)],
                name=f"micro-batch {m}", holds=part.kept * (way == "forward"), frees=part.kept * (way == "backward"),
            )  # fmt: skip
            if way == "forward":
                forwards[m] = number
            if 0 <= onward < count:
                message("send", rank, onward, way, m, number)
    return step


def one_stage_order(schedule: str, stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    """What a stage does: ``[("forward", micro-batch), ...]``."""
    ahead = micro_batches if schedule == "gpipe" else min(stages - stage - 1, micro_batches)
    order = [("forward", m) for m in range(ahead)]
    for m in range(ahead, micro_batches):
        order += [("forward", m), ("backward", m - ahead)]
    return order + [("backward", m) for m in range(micro_batches - ahead, micro_batches)]


def _optimizer(step: Step, machine: Machine, elements: float, element: float, offload: bool,
               after: list[int | None]) -> tuple[int, int]:  # fmt: skip
    """Append AdamW's step of a shard, and with ``offload`` the copy back. Returns the numbers of the first and last."""
    if not offload:
        stepped = step.add("optimizer", 0, "compute", COMPUTE, machine.adam_seconds(elements), after=after)
        return stepped, stepped
    stepped = step.add("optimizer", 0, "host", HOST, machine.adam_seconds(elements, on_host=True), after=after)
    seconds = elements * element / machine.copies
    return stepped, step.add("to_device", 0, "to device", COPY, seconds, after=[stepped])


def _together(units: Sequence[Unit]) -> Unit:
    forward, backward, kept = (sum(getattr(unit, what) for unit in units) for what in ("forward", "backward", "kept"))
    return Unit("stage", tuple(unit.elements for unit in units), forward, backward, kept, units[-1].output)


def _states(units: Sequence[Unit], element: float, stage: int = 0, shards: int = 1, offload: bool = False) -> float:
    """Bytes of parameters, gradients and Adam's states; with elements of under 4 bytes also a master in fp32."""
    optimizer = 0 if offload else 8 if element == 4 else 12
    elements = sum(unit.elements for unit in units)
    return memory.model_state_bytes(elements, stage, shards, (element, element, optimizer)) if elements else 0.0


def _one_tensor_each(units: Sequence[Unit]) -> list[Bucket]:
    return [
        Bucket(elements, n) for n, unit in reversed(list(enumerate(units))) for elements in reversed(unit.parameters)
    ]
