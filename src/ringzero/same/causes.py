"""What can make N ranks train unlike one process, and how it shows in the notes of the runs.

A cause is a function of what was seen (``Seen``) that returns a ``Cause`` or None. ``IN_ORDER`` has them, the surest
first: what is wrong before the first step, then in a gradient, then behind it.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch

Tensors = dict[str, torch.Tensor]
EXACT = 1e-6  # below this tolerance all elements must agree
AFTER_ADAM = 0.9  # above it so many: Adam moves an element by its rate whatever its gradient's size, so noise is enough
SMALL = 1e-3  # of the largest element of all: tensors whose elements are smaller count as this large


class Cause(NamedTuple):
    """What is the case, by name, and in a sentence that says what to do."""

    name: str
    sentence: str


class Difference(NamedTuple):
    """The first place where runs differ: in which event, in which of its tensors, and that in words."""

    event: int | None
    what: str
    names: list[str]
    words: str


class Seen:
    """The notes of ``many`` ranks and of ``one`` process, and to what part of the largest element they should agree.

    ``shares``: for each rank the notes of one process that had that rank's samples in the step that differs.
    """

    def __init__(self, many: list[dict], one: dict, tolerance: float):
        self.many, self.one, self.tolerance = many, one, tolerance
        self.shares: list[dict] = []
        self.ranks = len(many)

    def differing(self, mine: Tensors, theirs: Tensors, most: float = 1.0) -> list[str]:
        """The names whose tensors differ, or which only one of the two has. ``most`` of the elements must agree."""
        largest = max((_size(t) for t in theirs.values()), default=0.0)
        return [
            name
            for name in mine.keys() | theirs.keys()
            if name not in mine or name not in theirs or not self._close(mine[name], theirs[name], largest, most)
        ]

    def _close(self, a, b, largest, most):
        if a.shape != b.shape:
            return False
        unknown = ~(a.isfinite() & b.isfinite())
        if unknown.any() and not (a[unknown].isnan() == b[unknown].isnan()).all():
            return False
        off = (a - b)[~unknown].abs()
        most = 1.0 if self.tolerance < EXACT else most
        return not off.numel() or off.quantile(most).item() <= self.tolerance * max(_size(b), SMALL * largest)

    def alike(self, mine: Tensors, theirs: Tensors) -> bool:
        return not self.differing(mine, theirs)

    def first_difference(self) -> Difference | None:
        """Where a rank first differs from the one process, or two ranks from each other."""
        if bad := sorted({name for note in self.many for name in self.differing(note["start"], self.one["start"])}):
            return Difference(None, "start", bad, f"before the first step: {_names(bad)} differ.")
        step = 0
        for i, expected in enumerate(self.one["events"]):
            step += expected["kind"] == "step"
            for rank, note in enumerate(self.many):
                if i >= len(note["events"]) or note["events"][i]["kind"] != expected["kind"]:
                    return Difference(
                        i, "order", [], f"step {max(step, 1)}: rank {rank} did not do what one process does."
                    )
            for what in ("rates", "raw", "final", "state", "parameters", "buffers"):
                for rank, note in enumerate(self.many):
                    if what in expected and (bad := self._off(what, note["events"][i][what], expected[what])):
                        after = "after " * (expected["kind"] == "call")
                        words = f"{after}step {max(step, 1)}: {WORDS[what]} of {_names(bad)} on rank {rank} differ"
                        return Difference(i, what, bad, f"{words} from one process's.")
        for rank, note in enumerate(self.many):
            if len(note["events"]) > len(self.one["events"]):
                return Difference(len(self.one["events"]), "order", [], f"rank {rank} did more steps than one process.")
        return None

    def _off(self, what, mine, theirs):
        if what == "rates":
            return [] if mine == theirs else ["the optimizer"]
        if what == "state":  # a sharded optimizer has some of it on each rank
            mine, theirs = _these(mine, theirs), _these(theirs, mine)
        return sorted(self.differing(mine, theirs, AFTER_ADAM if what in ("state", "parameters") else 1.0))

    def before(self, event: int) -> int:
        """How many batches were taken before the step of this event began."""
        events = self.one["events"]
        if events[min(event, len(events) - 1)]["kind"] == "call":
            calls = [e["taken"] for e in events[:event] if e["kind"] == "call"]
            return calls[-1] if calls else 0
        earlier = [e["taken"] for e in events[:event] if e["kind"] == "step"]
        return earlier[-1] if earlier else 0

    # Of the event that differs

    def observed(self, event: int, what: str) -> list[Tensors]:
        return [note["events"][event][what] for note in self.many]

    def expected(self, event: int, what: str) -> Tensors:
        return self.one["events"][event][what]

    def own(self, event: int, what: str) -> list[Tensors]:
        """What each rank's samples alone give, in one process; nothing where that is not known."""
        if any(len(note["events"]) <= event or what not in note["events"][event] for note in self.shares):
            return []
        return [note["events"][event][what] for note in self.shares]


WORDS = {
    "rates": "the learning rates", "raw": "the gradients", "final": "the clipped gradients", "state": "the averages",
    "parameters": "the parameters", "buffers": "the buffers",
}  # fmt: skip


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
            f"{_names(first.names)} do not begin with the same values on all ranks: they were added after the model "
            "was wrapped, so DistributedDataParallel neither broadcasts them nor averages their gradients. Wrap it "
            "last"
        ))  # fmt: skip
    return Cause("unequal start", (
        f"{_names(first.names)} do not begin with the same values on all ranks: broadcast rank 0's parameters and "
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
        "of ranks (as accelerate's prepared scheduler does), or the rate itself depends on it"
    ))  # fmt: skip


# In a gradient


def one_learned_nothing(seen: Seen, first: Difference) -> Cause | None:
    """All gradients of a rank that stands apart are missing."""
    if first.what != "raw" or first.event is None:
        return None
    none = [rank for rank, g in enumerate(seen.observed(first.event, "raw")) if not g]
    if not none or len(none) == seen.ranks:
        return None
    return Cause("a rank without gradients", f"{_ranks(none)} had no gradients in this step; the others had")


def clipped_before(seen: Seen, first: Difference) -> Cause | None:
    """Each rank clipped what it had computed, and only then they were reduced."""
    if first.what not in ("raw", "final") or first.event is None:
        return None
    events = [note["events"][first.event] for note in seen.many]
    own = seen.own(first.event, "raw")
    if not all(event["clips"] for event in events) or not own:
        return None
    if not all(seen.alike(event["raw"], mine) for event, mine in zip(events, own, strict=True)):
        return None
    if all(seen.alike(events[0]["final"], event["final"]) for event in events):
        norms = ", ".join(f"{event['clips'][0][0]:.4g}" for event in events)
        return Cause("clipped before the reduction", (
            f"each rank clips its own gradients (norms {norms}) and the clipped ones are averaged: reduce first, clip "
            "after"
        ))  # fmt: skip
    return None


def clipped_per_rank(seen: Seen, first: Difference) -> Cause | None:
    """The gradients agree until they are clipped."""
    if first.what != "final" or first.event is None:
        return None
    norms = [event["clips"][0][0] for note in seen.many if (event := note["events"][first.event])["clips"]]
    said = ", ".join(f"{norm:.4g}" for norm in norms)
    expected = seen.one["events"][first.event]["clips"]
    theirs = f"; one process clips by {expected[0][0]:.4g}" if expected else ""
    return Cause("clipped per rank", (
        f"before clipping the gradients are right, after it they are not: each rank clips by the norm of what it holds "
        f"({said}){theirs}. Sum the squared norms over all ranks first"
    ))  # fmt: skip


def never_synchronised(seen: Seen, first: Difference) -> Cause | None:
    """A rank's gradient is its own samples'."""
    if first.what != "raw" or first.event is None:
        return None
    observed, own = seen.observed(first.event, "raw"), seen.own(first.event, "raw")
    apart = {
        name
        for name in first.names
        for a in observed
        for b in observed
        if name in a and name in b and not seen.alike({name: a[name]}, {name: b[name]})
    }
    if own:
        apart &= {
            name
            for name in apart
            if all(seen.alike(_only(g, name), _only(mine, name)) for g, mine in zip(observed, own, strict=True))
        }
    if not apart:
        return None
    trained = set(seen.expected(first.event, "raw"))
    facts = seen.many[0]["facts"]
    if apart != trained:
        return Cause("never synchronised, some parameters", (
            f"{_names(sorted(apart))} keep each rank's own gradients while the others are averaged: they were added, "
            "or their requires_grad was set, after the model was wrapped, or they are not in it"
        ))  # fmt: skip
    if seen.many[0]["events"][first.event]["unsynced"]:
        return Cause("no_sync left open", (
            "the last backward pass before the step ran under no_sync, so each rank stepped with its own gradients: "
            "leave no_sync before the last backward pass of an accumulation"
        ))  # fmt: skip
    if facts["past_the_wrapper"]:
        return Cause("never synchronised", (
            "the step calls the inner module and not the DistributedDataParallel around it, whose hooks average the "
            "gradients: call the wrapper"
        ))  # fmt: skip
    return Cause("never synchronised", (
        "each rank steps with the gradient of its own samples: average the gradients over the ranks before the step"
    ))  # fmt: skip


def multiple(seen: Seen, first: Difference) -> Cause | None:
    """The gradient is a number times what it should be."""
    if first.what != "raw" or first.event is None:
        return None
    observed, expected = seen.observed(first.event, "raw")[0], seen.expected(first.event, "raw")
    own = seen.own(first.event, "raw")
    n, events = seen.ranks, seen.many[0]["events"]
    for reference in ([_mean(own)] if own else []) + [expected]:
        times = _factor(observed, reference, first.names)
        if (
            times is None
            or _is(times, 1)
            or not seen.alike(_scaled(_these(reference, first.names), times), _these(observed, first.names))
        ):
            continue
        names = "" if set(first.names) == set(expected) else f" ({_names(first.names)})"
        if seen.many[0]["events"][first.event]["gathered"] and _is(times, 1 / n):
            return Cause("gathered without gradients", _GATHERED.format(n=n, what=f"1/{n} of"))
        if _is(times, n):
            return Cause("sum for mean", (
                f"the gradients{names} are {n} times those of one process: they are the sum over {n} ranks, not the "
                "mean. Divide by the number of ranks, or reduce with ReduceOp.AVG"
            ))  # fmt: skip
        if _is(times, 1 / n) and own and seen.alike(observed, _mean(own)):
            return Cause("mean of sums", (
                f"the ranks' gradients{names} are averaged, but the loss is a sum over samples, so one process's are "
                f"{n} times as large: take the mean over samples, or reduce with a sum"
            ))  # fmt: skip
        if _is(times, 1 / n):
            return Cause("averaged twice", (
                f"the gradients{names} are 1/{n} of one process's: they are divided by the number of ranks twice (the "
                "loss and the reduction, or the program and its DistributedDataParallel). Divide once"
            ))  # fmt: skip
        if _is(times, 0):
            return None
        window = len(events[first.event]["backward"])
        also = f"; {window} backward passes went into the step" if window > 1 else ""
        return Cause("scaled", f"the gradients{names} are {times:.4g} times those of one process{also}")
    return None


def token_weights(seen: Seen, first: Difference) -> Cause | None:
    """The mean of the ranks' means, where these are of unlike numbers of things."""
    if (own := _mean_of_means(seen, first)) is None or first.event is None:
        return None
    expected = seen.expected(first.event, "raw")
    columns = torch.stack([_flat(mine, expected) for mine in own], 1)
    weights = torch.linalg.lstsq(columns, _flat(expected, expected)[:, None]).solution.flatten()
    fitted = {name: sum(w * mine[name] for w, mine in zip(weights.tolist(), own, strict=True)) for name in expected}
    if not seen.alike(fitted, expected) or abs(weights.sum().item() - 1) > 1e-3 or weights.min() < 0:
        return None
    shares = ", ".join(f"{w:.0%}" for w in weights.tolist())
    return Cause("mean of means", (
        "each rank takes the mean over its own tokens, and all ranks count alike; but of what one process averages, "
        f"the ranks have {shares}. Divide each rank's sum by the number of tokens on all ranks (an all-reduce), times "
        f"{seen.ranks}"
    ))  # fmt: skip


def gathered(seen: Seen, first: Difference) -> Cause | None:
    if first.what != "raw" or first.event is None or not seen.many[0]["events"][first.event]["gathered"]:
        return None
    return Cause("gathered without gradients", _GATHERED.format(n=seen.ranks, what="not"))


_GATHERED = (
    "the loss uses tensors that all_gather brought from the other ranks, through which no gradient flows back, so the "
    "gradients are {what} one process's: gather with torch.distributed.nn.functional.all_gather, or put the own part "
    "back and "
    "multiply the loss by {n}"
)


def batch_statistics(seen: Seen, first: Difference) -> Cause | None:
    if not seen.one["facts"]["batch_norm"] or first.event is None:
        return None
    if first.what == "buffers" or _mean_of_means(seen, first) is not None:
        return Cause("BatchNorm statistics", (
            "BatchNorm normalises with the mean and variance of each rank's own samples, one process with those of "
            "all: use torch.nn.SyncBatchNorm.convert_sync_batchnorm, or a norm without the batch, if the ranks' "
            "batches are small"
        ))  # fmt: skip
    return None


def not_a_mean(seen: Seen, first: Difference) -> Cause | None:
    if _mean_of_means(seen, first) is None:
        return None
    return Cause("mean of means", (
        "the gradients are the mean of what the ranks' samples give, and one process with all samples gives another: "
        "the loss is no mean over samples. It uses statistics of the batch, or other samples of it, or a sum"
    ))  # fmt: skip


def synchronised_wrongly(seen: Seen, first: Difference) -> Cause | None:
    """All ranks have one gradient, and it is one rank's."""
    if first.what != "raw" or first.event is None:
        return None
    observed, own = seen.observed(first.event, "raw"), seen.own(first.event, "raw")
    if not own or not all(seen.alike(observed[0], g) for g in observed):
        return None
    for word, pick in (("largest", torch.amax), ("smallest", torch.amin)):
        names = observed[0].keys()
        if all(name in mine for name in names for mine in own) and seen.alike(
            observed[0], {name: pick(torch.stack([mine[name] for mine in own]), 0) for name in names}
        ):
            return Cause("reduced by another operation", f"each element is the {word} of the ranks', not their mean")
    for rank, mine in enumerate(own):
        if seen.alike(observed[0], mine):
            return Cause(
                "one rank's gradients",
                f"all ranks step with the gradients of rank {rank}: they were broadcast, not averaged",
            )
    return None


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
        f"{_ranks(off)} step with other averages than one process has: the optimizer's state was loaded, or kept, on "
        "some ranks only"
    ))  # fmt: skip


def changed_elsewhere(seen: Seen, first: Difference) -> Cause | None:
    if first.what != "parameters" or first.event is None:
        return None
    held = seen.observed(first.event, "parameters")
    off = [
        name for name in first.names if any(not seen.alike(_only(held[0], name), _only(other, name)) for other in held)
    ]
    if off:
        return Cause("parameters apart", (
            f"{_names(off)} differ between the ranks though the gradients agreed: something besides the optimizer "
            "writes them on some ranks, or a rank holds a copy"
        ))  # fmt: skip
    return Cause("parameters differ", f"{_names(first.names)} are alike on all ranks, and unlike one process's")


def buffers(seen: Seen, first: Difference) -> Cause | None:
    if first.what != "buffers":
        return None
    return Cause(
        "buffers differ", f"{_names(first.names)} are computed from each rank's own samples: average or broadcast them"
    )


IN_ORDER: list[Callable[[Seen, Difference], Cause | None]] = [
    unequal_start, skipped, schedule, one_learned_nothing, clipped_before, never_synchronised, multiple,
    token_weights, gathered, batch_statistics, not_a_mean, synchronised_wrongly, clipped_per_rank, optimizer_state,
    changed_elsewhere, buffers,
]  # fmt: skip


# Wrong though nothing differs


def repeated_samples(seen: Seen) -> Cause | None:
    """Two ranks took the same batch."""
    for batches in zip(*(note["taken"] for note in seen.many), strict=False):
        tensors = [_first_tensor(batch) for batch in batches]
        for rank, tensor in enumerate(tensors):
            for other in range(rank):
                if tensor is not None and tensor.numel() > 1 and _equal(tensor, tensors[other]):
                    return Cause("sampler repeats", (
                        f"ranks {other} and {rank} train on the same samples: give the DataLoader a "
                        f"DistributedSampler, or "
                        "cut each batch by the rank"
                    ))  # fmt: skip
    return None


def same_order(seen: Seen) -> Cause | None:
    epochs = [epoch for epoch, shuffle, *_ in seen.many[0]["epochs"] if shuffle]
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
                if _is(event["loss"], mean) and not _is(mean, losses[-1]):
                    return Cause("accumulation off by its factor", (
                        f"a step takes the sum of {k} backward passes, each from a whole loss ({losses[-1]:.4g}), so "
                        f"the gradient is {k} times that of the batch: divide each loss by {k} before its backward pass"
                    ))  # fmt: skip
    return None


ALONE: list[Callable[[Seen], Cause | None]] = [repeated_samples, same_order, one_seed, accumulation]


# Helpers


def _mean_of_means(seen, first):
    """The ranks' own gradients, if what was seen is their mean; else None."""
    if first.what not in ("raw", "final") or first.event is None or not (own := seen.own(first.event, "raw")):
        return None
    observed = seen.observed(first.event, "raw")
    return own if all(seen.alike(g, _mean(own)) for g in observed) else None


def _mean(many: list[Tensors]) -> Tensors:
    names = {name for each in many for name in each}
    return {name: sum(each[name] for each in many if name in each) / len(many) for name in names}  # type: ignore[misc]


def _scaled(tensors: Tensors, times: float) -> Tensors:
    return {name: tensor * times for name, tensor in tensors.items()}


def _factor(mine: Tensors, reference: Tensors, names: Iterable[str]) -> float | None:
    """The number by which the reference is multiplied, if it is one: by least squares."""
    names = [name for name in names if name in mine and name in reference]
    a, b = (_flat({name: t[name] for name in names}, dict.fromkeys(names)) for t in (mine, reference))
    below = (b @ b).item()
    return (a @ b).item() / below if below else None


def _flat(tensors: Tensors, names: Iterable[str]) -> torch.Tensor:
    parts = [tensors[name] for name in names if name in tensors]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)


def _only(tensors: Tensors, name: str) -> Tensors:
    return {name: tensors[name]} if name in tensors else {}


def _these(tensors: Tensors, names: Iterable[str]) -> Tensors:
    return {name: tensors[name] for name in names if name in tensors}


def _size(tensor):
    finite = tensor[tensor.isfinite()]
    return finite.abs().max().item() if finite.numel() else 0.0


def _is(value: float, expected: float) -> bool:
    return abs(value - expected) <= 1e-3 * max(abs(expected), 1e-12)


def _first_tensor(batch):
    if isinstance(batch, torch.Tensor):
        return batch
    inside = batch.values() if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else ()
    return next((t for value in inside if (t := _first_tensor(value)) is not None), None)


def _equal(a, b):
    return b is not None and a.shape == b.shape and torch.equal(a, b)


def _names(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _ranks(ranks: list[int]) -> str:
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
