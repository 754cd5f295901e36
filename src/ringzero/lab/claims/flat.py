"""Claims about runs of ``harness.flat``: a vector of parameters, its shards, their gradients and their norm."""

from math import prod

import torch

from ringzero.collectives import ALGORITHMS, chunk_bounds
from ringzero.lab.claims.collectives import given
from ringzero.lab.claims.values import close_by_name, equal, number
from ringzero.lab.harness import flat
from ringzero.lab.harness.sharded import numbers
from ringzero.lab.runs import Run, part

BESIDES = 1_000  # bytes that a flat may keep beside the vector: sizes and shapes, for instance

# ``lay_out``


def lies_end_to_end(run: Run) -> str | None:
    """The vector holds the parameters one after another, and they have the values they had."""
    values = flat.values_of(**run.case.options)
    whole = torch.cat([value.reshape(-1) for value in values.values()])
    if not all(report.same for report in run.reports):
        return "flat.parameters are not the parameters it was given, in their order"
    if not all(report.trained for report in run.reports):
        return "the parameters do not require a gradient any more: they cannot be trained"
    why = equal("the vector", [report.whole for report in run.reports], [whole] * run.world_size)
    return why or close_by_name("the parameter", [report.first for report in run.reports], values, 0)


def consists_of_views(run: Run) -> str | None:
    """What is written into the vector shows in the parameters, and nothing is in memory twice."""
    shapes = {name: flat.SHAPES[name] for name in run.option("names")}
    numel = sum(map(prod, shapes.values()))
    parts = torch.arange(float(numel), device="cpu").split([prod(shape) for shape in shapes.values()])
    for rank, report in enumerate(run.reports):
        for (name, shape), values in zip(shapes.items(), parts, strict=True):
            if not torch.equal(report.then[name], values.view(shape)):
                return f"on rank {rank} what was written into the vector does not show in {name}, or not in its place"
        if report.bytes != 4 * numel:
            took = f"take {report.bytes} bytes, expected {4 * numel} in all"
            return f"on rank {rank} parameters, vector and shard {took}"
        if report.besides > BESIDES:
            return f"on rank {rank} the flat keeps {report.besides:,} bytes besides the vector of {4 * numel:,}"
    return None


@given(consists_of_views)
def owns_its_chunk(run: Run) -> str | None:
    """Rank r owns chunk r of the vector, as ``chunk_bounds`` cuts it, and its shard is a view of that."""
    numel = sum(prod(flat.SHAPES[name]) for name in run.option("names"))
    bounds = chunk_bounds(numel, run.world_size).tolist()
    for rank, report in enumerate(run.reports):
        if report.owned != bounds[rank : rank + 2]:
            (start, stop), (first, last) = report.owned, bounds[rank : rank + 2]
            return f"rank {rank} owns [{start}:{stop}] of {numel} elements, expected [{first}:{last}]"
    whole = torch.arange(float(numel), device="cpu")
    shards = [part(whole, run.world_size, rank) for rank in range(run.world_size)]
    return equal("the shard", [report.shard for report in run.reports], shards)


# ``reduce_once``


def is_the_shard_of_the_mean(run: Run) -> str | None:
    """Rank r returns shard r of the mean gradient; if it is a shard of something else, the reason says of what."""
    sizes, seed, without = run.option("sizes"), run.option("seed"), run.option("without", ())
    gradients = [
        torch.cat([flat.gradient(n, seed, r, i) * (i not in without[r : r + 1]) for i, n in enumerate(sizes)])
        for r in range(run.world_size)
    ]
    parameters = torch.cat([numbers((n,), i) for i, n in enumerate(sizes)])
    for rank, report in enumerate(run.reports):
        if report.changed:
            return f"on rank {rank} parameter {report.changed[0]} itself was changed, not only its gradient"
        why = _not_the_shard(run, rank, torch.stack(gradients).mean(0))
        if why and run.world_size > 1:
            own = gradients[rank]
            if not _not_the_shard(run, rank, own) or not _not_the_shard(run, rank, own / run.world_size):
                return f"on rank {rank} the shard is of this rank's own gradient: it was not reduced"
            if not _not_the_shard(run, rank, parameters):
                return f"on rank {rank} the shard is of the parameters, not of their gradients"
        if why:
            return why
    return None


def _not_the_shard(run, rank, whole):
    """Why what ``rank`` returned is not its shard of ``whole``, or None."""
    right, shard = part(whole, run.world_size, rank), run.reports[rank].shard
    if not right.numel() and not shard.numel():
        return None
    return close_by_name("the", [{"shard": shard}], {"shard": right}, first_rank=rank)


@given(is_the_shard_of_the_mean)
def lets_the_rest_go(run: Run) -> str | None:
    """No parameter has its .grad any more, and the shard keeps nothing alive but its own bytes."""
    for rank, report in enumerate(run.reports):
        if report.left:
            return f"on rank {rank} parameter {report.left[0]} still has its .grad: set it to None"
        mine = 4 * report.shard.numel()
        if report.bytes > mine:
            kept = f"keeps {report.bytes} bytes alive: return a copy"
            return f"on rank {rank} the shard of {mine} bytes is a view that {kept}"
        if report.elsewhere > 64:
            return f"on rank {rank} {report.elsewhere} bytes besides the shard are still held afterwards: let them go"
        if report.uncounted > 64:
            return f"on rank {rank} {report.uncounted} bytes are kept in arrays or lists afterwards: let them go"
    return None


@given(is_the_shard_of_the_mean)
def sends_like_a_reduce_scatter(run: Run) -> str | None:
    """No rank sends more than in the reduce-scatter of a ring."""
    numel = sum(run.option("sizes"))
    due = ALGORITHMS["reduce_scatter"]["ring"](run.world_size).bytes_sent(numel, 4).tolist()
    for rank, (sent, right) in enumerate(zip(run.bytes_sent(), due, strict=True)):
        if sent > right + 4:
            times, enough = f"{sent / numel / 4:.3g} times them", f"{right / numel / 4:.3g} times would do"
            return f"rank {rank} sent {sent} bytes for gradients of {4 * numel}, {times}; {enough}"
    return None


# ``clip_once``


def returns_the_norm(run: Run) -> str | None:
    """Every rank returns the norm of all shards of all ranks."""
    for rank, report in enumerate(run.reports):
        if why := number(f"on rank {rank} the norm", report.norm, _norm(run), 1e-4):
            return why
    return None


def is_scaled(run: Run) -> str | None:
    """All shards are scaled by the same number, such that their norm together is at most ``max_norm``."""
    scale = min(1.0, run.option("max_norm") / (_norm(run) or 1))
    for rank, report in enumerate(run.reports):
        before = [part(vector, run.world_size, rank) for vector in _to_clip(run)]
        for i, (shard, was) in enumerate(zip(report.shards, before, strict=True)):
            factor = (shard * was).sum().item() / (was.square().sum().item() or 1)
            if was.numel() and not (shard - scale * was).abs().max() <= 1e-4 * scale * was.abs().max():
                return f"on rank {rank} shard {i} is {factor:.4g} times what it was, expected {scale:.4g}"
    return None


@given(returns_the_norm)
@given(is_scaled)
def one_number_travels(run: Run) -> str | None:
    """Each rank reduces one number, once."""
    for rank, operations in enumerate(run.operations):
        sent = sum(op.bytes for op in operations)
        if sent > 8 or len(operations) > 1:
            return f"rank {rank} reduced {sent} bytes in {len(operations)} messages; one number in one would do"
    return None


def _to_clip(run):
    return flat.vectors_to_clip(**run.case.options)


def _norm(run):
    return torch.cat(_to_clip(run)).norm().item()


# ``come_and_go``


def has_the_values(run: Run) -> str | None:
    """After gather() the parameters have the values of the ranks' shards, and a backward pass computes with them."""
    seed, times = run.option("seed"), run.option("times", 1)
    start = {name: numbers(shape, seed + i) for i, (name, shape) in enumerate(flat.SQUARE.items())}
    x, before = numbers((4, 30), seed), 2 ** (times - 1)
    used = {"y": before * torch.nn.functional.linear(x, **start), "x": before * start["weight"].sum(0).expand(4, 30)}
    why = close_by_name("computed with what was gathered,", run.returned, used)
    last = {name: 2**times * value for name, value in start.items()}
    why = why or close_by_name("after the shards were doubled,", [report.values for report in run.reports], last)
    missing = [rank for rank, report in enumerate(run.reports) if not report.own_is_there]
    if why and missing:
        own = "the rank's own part of whole is not its shard: write the shard there before the others get it"
        return f"on rank {missing[0]} after gather() {own}"
    return why


@given(has_the_values)
def only_the_shard_stays(run: Run) -> str | None:
    """After __init__ and after free() a rank holds its shard alone, after gather() the whole vector too."""
    numel = sum(map(prod, flat.SQUARE.values()))
    for rank, report in enumerate(run.reports):
        mine = 4 * part(torch.empty(numel, device="cpu"), run.world_size, rank).numel()
        made, gathered, freed, *_, last = report.held
        for when, held in (("when made", made), ("freed", freed), ("freed again", last)):
            if held != mine:
                return f"on rank {rank}, {when}, it holds {held} bytes; the shard is {mine}, the whole {4 * numel}"
        if gathered != mine + 4 * numel:
            return f"on rank {rank} {gathered} bytes are held after gather(), expected {mine} and {4 * numel}"
        if report.besides > BESIDES:
            return f"on rank {rank} {report.besides:,} bytes are kept besides the shard: free() does not give them back"
    return None


@given(has_the_values)
def sends_like_all_gathers(run: Run) -> str | None:
    """A gather() sends no more than the all-gather of a ring."""
    numel, times = sum(map(prod, flat.SQUARE.values())), 3 * run.option("times", 1)
    due = ALGORITHMS["all_gather"]["ring"](run.world_size).bytes_sent(numel, 4).tolist()
    for rank, (sent, right) in enumerate(zip(run.bytes_sent(), due, strict=True)):
        if sent > times * right + 8:
            return f"rank {rank} sent {sent / times:.4g} bytes for each gather of {4 * numel}, {right} would do"
    return None
