"""What can be wrong in a gradient, and how it shows.

The ranks' gradients, those of one process, and those that each rank's samples alone give: how are they put together?
"""

import itertools
from collections.abc import Callable

import torch

from ringzero.same.seen import (
    Cause,
    Difference,
    Seen,
    Tensors,
    counted,
    factor,
    flat,
    is_close_to,
    listed,
    only,
    scaled,
    these,
)  # fmt: skip


def one_learned_nothing(seen: Seen, first: Difference) -> Cause | None:
    """All gradients of a rank that stands apart are missing."""
    if first.what != "raw" or first.event is None:
        return None
    none = [rank for rank, g in enumerate(seen.observed(first.event, "raw")) if not g]
    if not none or len(none) == seen.ranks:
        return None
    return Cause("a rank without gradients", f"{counted(none)} had no gradients in this step; the others had")


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


def no_sync(seen: Seen, first: Difference) -> Cause | None:
    if first.what != "raw" or first.event is None or not seen.many[0]["events"][first.event]["unsynced"]:
        return None
    if not _apart(seen, first):
        return None
    return Cause("no_sync left open", (
        "the last micro-batch before the step ran under no_sync (or without require_backward_grad_sync), in its "
        "forward or its backward pass, so each rank stepped with gradients of its own: leave no_sync before the last "
        "forward pass of an accumulation"
    ))  # fmt: skip


def never_synchronised(seen: Seen, first: Difference) -> Cause | None:
    """A rank's gradient is its own samples'."""
    if first.what != "raw" or first.event is None:
        return None
    observed, own, apart = seen.observed(first.event, "raw"), seen.own(first.event, "raw"), _apart(seen, first)
    if own:
        apart = {
            name
            for name in apart
            if all(seen.alike(only(g, name), only(mine, name)) for g, mine in zip(observed, own, strict=True))
        }
    if not apart:
        return None
    if apart != set(seen.expected(first.event, "raw")):
        return Cause("never synchronised, some parameters", (
            f"{listed(sorted(apart))} keep each rank's own gradients while the others are averaged: they were added or "
            "replaced, or their requires_grad was set, after the model was wrapped, or they are not in it"
        ))  # fmt: skip
    if seen.many[0]["facts"]["past_the_wrapper"]:
        return Cause("never synchronised", (
            "the step calls the inner module and not the DistributedDataParallel around it, whose hooks average the "
            "gradients: call the wrapper"
        ))  # fmt: skip
    if seen.many[0]["facts"]["wrapped"]:
        return Cause("never synchronised", (
            "DistributedDataParallel averaged no gradient: it waits for one of a parameter that was replaced after the "
            "model was wrapped, or that the step did not use. Wrap the model last, and give find_unused_parameters=True"
            " where a step leaves parameters out"
        ))  # fmt: skip
    return Cause("never synchronised", (
        "each rank steps with the gradient of its own samples: average the gradients over the ranks before the step"
    ))  # fmt: skip


def _apart(seen: Seen, first: Difference) -> set[str]:
    """The parameters whose gradients differ between the ranks."""
    observed = seen.observed(first.event, "raw")  # type: ignore[arg-type]
    return {
        name
        for name in first.names
        for a, b in itertools.combinations(observed, 2)
        if name in a and name in b and not seen.alike(only(a, name), only(b, name))
    }


def in_groups(seen: Seen, first: Difference) -> Cause | None:
    """Some ranks have one gradient, and others another."""
    if first.what != "raw" or first.event is None:
        return None
    groups: list[list[int]] = []
    observed = seen.observed(first.event, "raw")
    for rank, mine in enumerate(observed):
        for group in groups:
            if seen.alike(mine, observed[group[0]]):
                group.append(rank)
                break
        else:
            groups.append([rank])
    if not 1 < len(groups) < seen.ranks:
        return None
    return Cause("a part of the ranks only", (
        f"{' and '.join(map(counted, groups))} step with other gradients than one another: the gradients are reduced "
        "inside a group of ranks, and not over all ranks that train one model. Give the reduction the group of all"
    ))  # fmt: skip


def after_backward(seen: Seen, first: Difference) -> Cause | None:
    """Right when the last backward pass ended, and wrong when the optimizer stepped."""
    if first.what != "raw" or first.event is None:
        return None
    left, right = seen.observed(first.event, "left"), seen.expected(first.event, "left")
    if not right or not all(seen.alike(mine, right) for mine in left):
        return None
    observed, expected = seen.observed(first.event, "raw")[0], seen.expected(first.event, "raw")
    times = factor(observed, expected, first.names)
    fits = times is not None and seen.alike(scaled(these(expected, first.names), times), these(observed, first.names))
    if times is not None and fits and (is_close_to(times, seen.ranks) or is_close_to(times, 1 / seen.ranks)):
        return None  # which ``multiple`` explains
    how = f"{times:.4g} times one process's" if fits else "wrong"
    return Cause("changed after the backward pass", (
        f"the gradients are right when the backward pass ends, and {how} when the optimizer steps: what the program "
        "does to them in between depends on the number of ranks. A norm of gradients that every rank has whole must "
        "not be added up over the ranks"
    ))  # fmt: skip


def multiple(seen: Seen, first: Difference) -> Cause | None:
    """The gradient is a number times what it should be."""
    if first.what != "raw" or first.event is None:
        return None
    observed, expected = seen.observed(first.event, "raw")[0], seen.expected(first.event, "raw")
    own = seen.own(first.event, "raw")
    n, events = seen.ranks, seen.many[0]["events"]
    for reference in ([mean(own)] if own else []) + [expected]:
        times = factor(observed, reference, first.names)
        if (
            times is None
            or is_close_to(times, 1)
            or not seen.alike(scaled(these(reference, first.names), times), these(observed, first.names))
        ):
            continue
        names = "" if set(first.names) == set(expected) else f" ({listed(first.names)})"
        if seen.many[0]["events"][first.event]["gathered"] and is_close_to(times, 1 / n) and reference is expected:
            return Cause("gathered without gradients", _GATHERED.format(n=n, what=f"1/{n} of"))
        if is_close_to(times, n):
            return Cause("sum for mean", (
                f"the gradients{names} are {n} times those of one process: they are the sum over {n} ranks, not the "
                "mean. Divide by the number of ranks, or reduce with ReduceOp.AVG"
            ))  # fmt: skip
        passes, of_one = (len(note["events"][first.event]["backward"]) for note in (seen.many[0], seen.one))
        if is_close_to(times, 1 / n) and of_one == n * passes:
            return Cause("accumulation off by its factor", (
                f"a step adds up {passes} backward passes on each rank, and {of_one} in one process, which cuts all "
                "samples into pieces of the same size; the sum is not divided by their number. Divide each loss by the "
                "number of backward passes"
            ))  # fmt: skip
        if is_close_to(times, 1 / n) and own and seen.alike(observed, mean(own)):
            return Cause("mean of sums", (
                f"the ranks' gradients{names} are averaged, but the loss is a sum over samples, so one process's are "
                f"{n} times as large: take the mean over samples, or reduce with a sum"
            ))  # fmt: skip
        if is_close_to(times, 1 / n):
            return Cause("averaged twice", (
                f"the gradients{names} are 1/{n} of one process's: they are divided by the number of ranks twice (the "
                "loss and the reduction, or the program and its DistributedDataParallel). Divide once"
            ))  # fmt: skip
        if is_close_to(times, 0):
            return None
        window = len(events[first.event]["backward"])
        also = f"; {window} backward passes went into the step" if window > 1 else ""
        return Cause("scaled", f"the gradients{names} are {times:.4g} times those of one process{also}")
    return None


def token_weights(seen: Seen, first: Difference) -> Cause | None:
    """The mean of the ranks' means, where these are of unlike numbers of things."""
    if (own := mean_of_means(seen, first)) is None or first.event is None:
        return None
    expected = seen.expected(first.event, "raw")
    columns = torch.stack([flat(mine, expected) for mine in own], 1)
    weights = torch.linalg.lstsq(columns, flat(expected, expected)[:, None]).solution.flatten()
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
    if mean_of_means(seen, first) is not None:  # the loss knows nothing of other ranks
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
    if first.what == "buffers" or mean_of_means(seen, first) is not None:
        return Cause("BatchNorm statistics", (
            "BatchNorm normalises with the mean and variance of each rank's own samples, one process with those of "
            "all: use torch.nn.SyncBatchNorm.convert_sync_batchnorm, or a norm without the batch, if the ranks' "
            "batches are small"
        ))  # fmt: skip
    return None


def not_a_mean(seen: Seen, first: Difference) -> Cause | None:
    if mean_of_means(seen, first) is None:
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


IN_ORDER: list[Callable[[Seen, Difference], Cause | None]] = [
    one_learned_nothing, clipped_before, no_sync, never_synchronised, in_groups, after_backward, multiple,
    token_weights, gathered, batch_statistics, not_a_mean, synchronised_wrongly, clipped_per_rank,
]  # fmt: skip


def mean_of_means(seen, first):
    """The ranks' own gradients, if what was seen is their mean; else None."""
    if first.what not in ("raw", "final") or first.event is None or not (own := seen.own(first.event, "raw")):
        return None
    observed = seen.observed(first.event, "raw")
    return own if all(seen.alike(g, mean(own)) for g in observed) else None


def mean(many: list[Tensors]) -> Tensors:
    names = {name for each in many for name in each}
    return {name: sum(each[name] for each in many if name in each) / len(many) for name in names}  # type: ignore[misc]
