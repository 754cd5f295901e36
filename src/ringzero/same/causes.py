"""What can make N ranks train unlike one process, and how it shows in the notes of the runs.

A cause is a function of what was seen (``Seen``) that returns a ``Cause`` or None. ``IN_ORDER`` has them, the surest
first: what is wrong before the first step, then in a gradient (``gradients.py``), then behind it.
"""

from collections.abc import Callable

import torch

from ringzero.same import gradients
from ringzero.same.seen import Cause, Difference, Seen, counted, is_close_to, listed, only
from ringzero.same.watching import checksum


def of(seen: Seen, first: Difference | None) -> list[Cause]:
    """The causes of the first difference, and what else is wrong though nothing differs yet."""
    found = [cause for look in IN_ORDER if first is not None and (cause := look(seen, first)) is not None][:1]
    return found + [
        cause for look in ALONE if (cause := look(seen)) is not None and cause.name not in {c.name for c in found}
    ]


# Before the first step


def unequal_start(seen: Seen, first: Difference) -> Cause | None:
    if first.what != "start":
        return None
    if seen.many[0]["facts"]["wrapped"] and len(first.names) < len(seen.one["start"]):
        return Cause("never synchronised, some parameters", (
            f"{listed(first.names)} do not begin with the same values on all ranks: they were added after the model "
            "was wrapped, so DistributedDataParallel neither broadcasts them nor averages their gradients. Wrap it "
            "last"
        ))  # fmt: skip
    return Cause("unequal start", (
        f"{listed(first.names)} do not begin with the same values on all ranks: broadcast rank 0's parameters and "
        "buffers before the first step (DistributedDataParallel does), or make the model after the same seed on each "
        "rank"
    ))  # fmt: skip


def skipped(seen: Seen, first: Difference) -> Cause | None:
    if first.what != "order":
        return None
    steps = [sum(event["kind"] == "step" for event in note["events"]) for note in seen.many]
    if len(set(steps)) > 1:
        said = ", ".join(f"rank {rank}: {count}" for rank, count in enumerate(steps))
        return Cause("a step on some ranks only", (
            f"the ranks did not do as many optimizer steps ({said}): what decides about a step (a NaN, an empty batch, "
            "an early stop) must be agreed on by all ranks first, as by an all-reduce of the flag"
        ))  # fmt: skip
    return None


def schedule(seen: Seen, first: Difference) -> Cause | None:
    if first.what != "rates" or first.event is None:
        return None
    theirs = seen.one["events"][first.event]["rates"]
    rates = [note["events"][first.event]["rates"] for note in seen.many]
    if any(rate != rates[0] for rate in rates):
        said = ", ".join(f"{rate[0]:g}" for rate in rates)
        return Cause("learning rates apart", f"the ranks step with other learning rates ({said}): they must be alike")
    mine = rates[0]
    return Cause("schedule scaled", (
        f"the learning rate is {mine[0]:g} where one process has {theirs[0]:g}: the schedule advances with the number "
        "of ranks, or the rate itself depends on it. A scheduler that accelerate prepared advances by the number of "
        "ranks on purpose: that is right if its length was counted in batches of the loader before prepare"
    ))  # fmt: skip


# Behind the gradient


def optimizer_state(seen: Seen, first: Difference) -> Cause | None:
    if first.what not in ("state", "parameters") or first.event is None:
        return None
    step = first.event - 1 if first.what == "parameters" else first.event
    states = [note["events"][step].get("state", {}) for note in seen.many]
    off = [
        rank for rank, state in enumerate(states) if not seen.alike(state, seen.one["events"][step].get("state", {}))
    ]
    if not off:
        return None
    return Cause("optimizer state out of step", (
        f"{counted(off)} step with other averages than one process has: the optimizer's state was loaded, or kept, on "
        "some ranks only"
    ))  # fmt: skip


def changed_elsewhere(seen: Seen, first: Difference) -> Cause | None:
    if first.what != "parameters" or first.event is None:
        return None
    held = seen.observed(first.event, "parameters")
    off = [
        name for name in first.names if any(not seen.alike(only(held[0], name), only(other, name)) for other in held)
    ]
    if off:
        return Cause("parameters apart", (
            f"{listed(off)} differ between the ranks though the gradients agreed: something besides the optimizer "
            "writes them on some ranks, or a rank holds a copy"
        ))  # fmt: skip
    return Cause("parameters differ", f"{listed(first.names)} are alike on all ranks, and unlike one process's")


def buffers(seen: Seen, first: Difference) -> Cause | None:
    if first.what != "buffers":
        return None
    return Cause(
        "buffers differ", f"{listed(first.names)} are computed from each rank's own samples: average or broadcast them"
    )


IN_ORDER: list[Callable[[Seen, Difference], Cause | None]] = [
    unequal_start, skipped, schedule, *gradients.IN_ORDER, optimizer_state, changed_elsewhere, buffers,
]  # fmt: skip


# Wrong though nothing differs


def repeated_samples(seen: Seen) -> Cause | None:
    """Two ranks computed with the same samples, in each of their forward passes; or, of a loader's, with many."""
    if sampler_seeds(seen):
        return None  # which says more
    for rank, note in enumerate(seen.many):
        for other in range(rank):
            if _same_inputs(note, seen.many[other]):
                return Cause("sampler repeats", (
                    f"ranks {other} and {rank} train on the same samples: give the DataLoader a DistributedSampler, "
                    "or cut each batch by the rank"
                ))  # fmt: skip
            if (shared := _shared(note, seen.many[other], seen.ranks)) is not None:
                return Cause("sampler repeats", (
                    f"ranks {other} and {rank} share {shared} samples in one pass: each rank takes its part from an "
                    "order of its own, or takes all of the dataset. Give the DataLoader a DistributedSampler, and "
                    "shuffle nothing else after a seed of the rank"
                ))  # fmt: skip
    return None


def _same_inputs(note, other):
    mine, theirs = note["inputs"], other["inputs"]
    distinct = len({tuple(each) for each in mine}) > 1  # a program may give its model one thing again and again
    pairs = [(note["taken"][i], other["taken"][i]) for i in note["loaded"] if i < len(other["taken"])]
    batches = [pair for pair in pairs if not isinstance(pair[0], str) and _first_tensor(pair[0]) is not None]
    if note["loaded"]:  # what a loader hands out may still be cut, so the model must get the same, too
        return bool(batches) and mine == theirs and all(_equal(*map(_first_tensor, pair)) for pair in batches)
    return distinct and mine == theirs and not note["taken"]


def _shared(note, other, ranks):
    """How many samples of a pass that trains both ranks had, if they are too many for chance and padding."""
    for one, two in zip(note["passes"], other["passes"], strict=False):
        if not (_trains(note, one) and _trains(other, two)):
            continue  # an evaluation may go over all samples on every rank
        mine, theirs = _rows(note, one), _rows(other, two)
        if len(set(mine)) == len(mine) and len(set(theirs)) == len(theirs):
            shared = len(set(mine) & set(theirs))
            numbers = any(t.is_floating_point() for t in _tensors(note["taken"][one["batches"][0]]))
            by_chance = 1 if numbers else 7  # other samples may be alike, as short texts are
            if shared > max(one.get("padding", 0), by_chance) and shared >= len(mine) / (2 * ranks):
                return shared
    return None


def _trains(note, begun):
    """Whether an optimizer steps right after one of the pass's batches."""
    return any(event["kind"] == "step" and event["taken"] - 1 in begun["batches"] for event in note["events"])


def _rows(note, begun):
    """The samples of a pass, as something that can be compared. Without a sampler those that a model got whole."""
    rows: list = []
    models = {got for _, got in note["inputs"]}
    for place in begun["batches"]:
        tensor = _first_tensor(note["taken"][place])
        if tensor is None or tensor.layout != torch.strided or tensor.dim() < 2:
            continue
        if begun["distributed"] or checksum(tensor) in models:  # what a loader hands out may still be cut by the rank
            whole = [
                t
                for t in _tensors(note["taken"][place])
                if t.layout == torch.strided and t.dim() and len(t) == len(tensor)
            ]
            rows += [
                b"".join(t[i].contiguous().view(-1).view(torch.uint8).numpy().tobytes() for t in whole)
                for i in range(len(tensor))
            ]
    return rows


def sampler_seeds(seen: Seen) -> Cause | None:
    for passes in zip(*(note["passes"] for note in seen.many), strict=False):
        for what in ("seed", "epoch"):
            values = [each.get(what) for each in passes]
            if all(each.get("shuffle") for each in passes) and len(set(values)) > 1:
                return Cause("sampler seeds apart", (
                    f"the DistributedSamplers of the ranks shuffle after other {what}s ({_said(values)}), so some "
                    f"samples go to several ranks and others to none: give all ranks the same {what}"
                ))  # fmt: skip
    return None


def left_out(seen: Seen) -> Cause | None:
    """A pass ended, and the ranks had no more than a share of what their samplers had cut for them."""
    for note in seen.many:
        for begun in note["passes"]:
            if not (begun["ended"] and begun["distributed"]):
                continue
            firsts = [_first_tensor(note["taken"][place]) for place in begun["batches"]]
            sizes = [len(tensor) if tensor is not None and tensor.dim() else 0 for tensor in firsts]
            had, due, batch_size = sum(sizes), begun["samples"], max(sizes, default=0)
            if 0 < had <= min(due - batch_size, due / seen.ranks + batch_size):  # drop_last loses less than a batch
                return Cause("samples left out", (
                    f"the DistributedSampler gives a rank {due} samples, and a pass has {had}: they are cut by rank "
                    "twice. Leave the sampler out where accelerate's prepare, or another wrapper, cuts the loader too"
                ))  # fmt: skip
    return None


def idle_optimizer(seen: Seen) -> Cause | None:
    if not all(note["facts"]["idle_optimizer"] for note in seen.many):
        return None
    return Cause("optimizer of other parameters", (
        "none of the optimizer's parameters ever has a gradient, and the model's have: it was made before the model's "
        "parameters were replaced (fully_shard, FullyShardedDataParallel and .to do that). Make the optimizer last"
    ))  # fmt: skip


def same_order(seen: Seen) -> Cause | None:
    epochs = [begun["epoch"] for begun in seen.many[0]["passes"] if begun.get("shuffle")]
    if len(epochs) > 1 and len(set(epochs)) == 1:
        return Cause("set_epoch never called", (
            f"{len(epochs)} passes over the data have one order: call sampler.set_epoch(epoch) before each of them"
        ))  # fmt: skip
    return None


def one_seed(seen: Seen) -> Cause | None:
    states = [note["dropped"][0] for note in seen.many if note["dropped"]]
    if len(states) > 1 and len(set(states)) == 1:
        return Cause("one seed", (
            "dropout drops the same units on all ranks, because their random numbers begin alike: after the model is "
            "made, seed each rank with its own number"
        ))  # fmt: skip
    return None


def accumulation(seen: Seen) -> Cause | None:
    """A step with the sum of backward passes, each from a whole loss: the program says their mean is the step's loss.

    A program that says the last one's loss may have divided each, and is not accused.
    """
    for note in seen.many:
        losses: list[float] = []
        for event in note["events"]:
            if event["kind"] == "step":
                losses = event["backward"]
            elif len(losses) > 1 and event["loss"] is not None:
                k, mean = len(losses), sum(losses) / len(losses)
                if is_close_to(event["loss"], mean) and not is_close_to(mean, losses[-1]):
                    return Cause("accumulation off by its factor", (
                        f"a step takes the sum of {k} backward passes, each from a whole loss ({losses[-1]:.4g}), so "
                        f"the gradient is {k} times that of the batch: divide each loss by {k} before its backward pass"
                    ))  # fmt: skip
    return None


ALONE: list[Callable[[Seen], Cause | None]] = [
    sampler_seeds, repeated_samples, left_out, same_order, one_seed, accumulation, idle_optimizer,
]  # fmt: skip


def _said(values):
    return ", ".join(map(str, values))


def _first_tensor(batch):
    return next(_tensors(batch), None)


def _tensors(batch):
    if isinstance(batch, torch.Tensor):
        yield batch
    inside = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else ()
    for value in inside:
        yield from _tensors(value)


def _equal(a, b):
    return b is not None and a.shape == b.shape and torch.equal(a, b)
