"""Claims about the results of collectives that take a 1-D tensor, on runs with ``numel``.

``root`` is the option of that name. Chunks are cut by ``ringzero.collectives.chunk_bounds``.
"""

import math
from collections.abc import Callable
from itertools import permutations, product

import torch

from ringzero.collectives import chunk_bounds
from ringzero_course.lab.claims.values import equal
from ringzero_course.lab.runs import LARGEST, Claim, Run

# A run in which it is asked whose parts are in a wrong sum: 3^N sums are compared, so the numbers must be large, or one
# of the sums would be the wrong one by chance.
MOST_RANKS, LEAST_LARGEST = 7, 2**20


def all_of(*claims: Claim) -> Claim:
    """A claim: all of these; the reason is the first one's that does not hold."""
    return lambda run: next((why for claim in claims if (why := claim(run)) is not None), None)


def given(first: Claim) -> Callable[[Claim], Claim]:
    """A decorator: the claim holds only where ``first`` does, whose reason comes first.

    A function that sends little, or frees all it has, and computes the wrong thing has not met the claim.
    """
    return lambda claim: all_of(first, claim)


def everyone_has_the_roots(run: Run) -> str | None:
    """Every rank's tensor ends as the root's began."""
    return equal("the tensor", run.after, [run.inputs[run.option("root")]] * run.world_size, cause=_as_before(run))


def everyone_has_the_sum(run: Run) -> str | None:
    """Every rank's tensor ends as the sum over ranks."""
    return equal("the tensor", run.after, [run.total()] * run.world_size, cause=_whose(run))


def everyone_has_every_chunk(run: Run) -> str | None:
    """Every rank's tensor ends with rank r's chunk r, for all r."""
    right = [_everyones_chunks(run)] * run.world_size
    return _has_every_chunk(run, "the tensor", run.after, right, cause=_as_before(run))


def the_root_has_the_sum(run: Run) -> str | None:
    root = run.option("root")
    return equal("the root's tensor", [run.after[root]], [run.total()], root, _whose(run))


def the_root_has_every_chunk(run: Run) -> str | None:
    right, root = [_everyones_chunks(run)], run.option("root")
    return _has_every_chunk(run, "the root's tensor", [run.after[root]], right, root, _as_before(run))


def _has_every_chunk(run, what, got, expected, first_rank=0, cause=None):
    """As ``equal``; says whose chunk is in the place of another rank's."""
    if (why := equal(what, got, expected, first_rank, cause)) is None:
        return None
    for rank, (mine, right) in enumerate(zip(got, expected, strict=True), first_rank):
        if not isinstance(mine, torch.Tensor) or mine.shape != right.shape:
            return why
        for place, other in permutations(range(run.world_size), 2):
            here, theirs = run.part(mine, place), run.part(right, other)
            if here.numel() and torch.equal(here, theirs.to(here.dtype)):
                return f"on rank {rank} {what} has rank {other}'s chunk in the place of rank {place}'s"
    return why


def the_others_are_unchanged(run: Run) -> str | None:
    """The tensors of all ranks but the root end as they began."""
    root = run.option("root")
    return equal("the tensor", run.after, [*run.inputs[:root], run.after[root], *run.inputs[root + 1 :]])


def nothing_changes(run: Run) -> str | None:
    """Every rank's tensor ends as it began."""
    return equal("the tensor", run.after, run.inputs)


def returns_the_roots_chunk(run: Run) -> str | None:
    """Rank r returns chunk r of the root's tensor."""
    return equal("the chunk", run.returned, _parts(run, [run.inputs[run.option("root")]] * run.world_size))


def only_its_chunk_changes(run: Run) -> str | None:
    """Rank r's tensor ends as it began, with the root's chunk r in its place."""
    expected = [x.clone() for x in run.inputs]
    for rank, x in enumerate(expected):
        run.part(x, rank).copy_(run.part(run.inputs[run.option("root")], rank))
    return equal("the tensor", run.after, expected)


def returns_its_chunk_of_the_sum(run: Run) -> str | None:
    """Rank r returns chunk r of the sum over ranks."""
    return equal("the chunk", run.returned, _parts(run, [run.total()] * run.world_size), cause=_whose_of_chunk(run))


def has_its_chunk_of_the_sum(run: Run) -> str | None:
    """Chunk r of rank r's own tensor ends as that of the sum over ranks."""
    right = _parts(run, [run.total()] * run.world_size)
    return equal("the tensor's own chunk", _parts(run, run.after), right, cause=_whose_of_chunk(run))


def returns_a_view(run: Run) -> str | None:
    """What rank r returns lies where chunk r of its own tensor lies: a view of it, and no copy."""
    assert run.numel is not None
    bounds = chunk_bounds(run.numel, run.world_size).tolist()
    for rank, begins in enumerate(run.views):
        if bounds[rank] == bounds[rank + 1] or begins == bounds[rank]:  # nothing lies anywhere
            continue
        if begins is None:
            return f"what rank {rank} returns is a copy of the chunk, not a view of its tensor"
        return f"what rank {rank} returns begins at element {begins} of its tensor, and its chunk at {bounds[rank]}"
    return None


def returns_new_memory(run: Run) -> str | None:
    """What each rank returns is a tensor of its own, no view of the one it was given, and has that one's type."""
    for rank, begins in enumerate(run.views):
        if begins is not None and run.returned[rank].numel():
            return f"what rank {rank} returns lies in the memory of the tensor that it was given: it is no new one"
        if run.returned[rank].dtype != run.case.dtype:
            return f"what rank {rank} returns is {run.returned[rank].dtype}, and it was given {run.case.dtype}"
    return None


def returns_everyones_chunk(run: Run) -> str | None:
    """Rank r returns everyone's chunk r in one tensor, rank 0's first."""
    expected = [torch.cat([run.part(x, rank) for x in run.inputs]) for rank in range(run.world_size)]
    return _has_every_chunk(run, "what is returned", run.returned, expected)


def _as_before(run):
    """Says of an element that nothing was written to it: a ``cause`` for ``equal``."""
    return lambda rank, i, value: ": nothing was written there" if run.inputs[rank][i] == value else ""


def _whose(run, begins=lambda rank: 0):
    """Says of an element that is no sum over all ranks what it is instead: a ``cause`` for ``equal``.

    The element of ``rank`` is counted from ``begins(rank)``.
    """

    def cause(rank, i, value):
        if run.world_size > MOST_RANKS or LARGEST[run.case.dtype] < LEAST_LARGEST:
            return ""
        parts = [x[begins(rank) + i].item() for x in run.inputs]
        if run.world_size > 1 and math.isclose(value * run.world_size, sum(parts), rel_tol=1e-6):
            return ": that is the mean, not the sum"
        for times in product((1, 0, 2), repeat=run.world_size):
            if sum(n * part for n, part in zip(times, parts, strict=True)) == value and any(times):
                missing = _parts_of([r for r, n in enumerate(times) if n == 0], "is missing", "are missing")
                twice = _parts_of([r for r, n in enumerate(times) if n == 2], "counts twice", "count twice")
                return ": " + ", ".join(filter(None, [missing, twice]))
        return ""

    return cause


def _parts_of(ranks, one, more):
    if len(ranks) > 1:
        return f"the parts of ranks {', '.join(map(str, ranks))} {more}"
    return f"rank {ranks[0]}'s part {one}" if ranks else ""


def _whose_of_chunk(run):
    bounds = chunk_bounds(run.numel, run.world_size).tolist()
    return _whose(run, lambda rank: bounds[rank])


def _everyones_chunks(run):
    return torch.cat(_parts(run, run.inputs))


def _parts(run, tensors):
    """Chunk r of ``tensors[r]``, for all r."""
    return [run.part(x, rank) for rank, x in enumerate(tensors)]
