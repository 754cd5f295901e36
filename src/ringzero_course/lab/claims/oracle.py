"""Values, bytes held and sent, and the order of events, beside what is right on each rank: claims of many labs.

An oracle is a function of a run and a rank. It gives ``{group: {name in words: tensor}}``. The report of a rank has for
each group such a dict too, or the tensors alone, in a list of this order.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import torch

from ringzero_course.lab.claims.values import close, same
from ringzero_course.lab.runs import Claim, Run

Values = dict[str, dict[str, torch.Tensor]]
Oracle = Callable[[Run, int], Values]


def is_right(
    oracle: Oracle,
    *groups: str,
    hint: str = "",
    mistakes: Callable[[Run, int], dict[str, Values]] | None = None,
    tolerance: float = 1e-4,
) -> Claim:
    """A claim: every rank reports what the oracle has in these groups. What has no elements is right.

    If not, ``hint`` ends the sentence. ``mistakes`` gives wrong values, each with the words that end it in their place.
    """

    def why_not(run, rank, group):
        got, right = run.returned[rank][group], oracle(run, rank)[group]
        if not isinstance(got, dict):
            if len(got) != len(right):
                return f"on rank {rank} there are {len(got)} {group}, expected {len(right)}"
            got = dict(zip(right, got, strict=True))
        for name, expected in right.items():
            why = expected.numel() and close(name, [got.get(name)], [expected], tolerance, rank)
            if not why:
                continue
            for words, wrong in mistakes(run, rank).items() if mistakes else ():
                instead = wrong.get(group, {}).get(name)
                if instead is not None and not close("", [got.get(name)], [instead], tolerance):
                    return f"on rank {rank} {name} {words}"
            return why + hint
        return None

    def claim(run):
        reasons = (why_not(run, rank, group) for group in groups for rank in range(run.world_size))
        return next(filter(None, reasons), None)

    return claim


def stays(oracle: Oracle) -> Claim:
    """A claim: what a function was given, the group "given", is as it was."""
    return is_right(oracle, "given", hint="; what a function is given stays as it was")


def in_one_process(simulate: Callable[..., list[Values]]) -> Callable[..., Values]:
    """A decorator: an oracle from ``simulate(ranks, **options)``, which says of each rank what is right there.

    More options, which are given to the oracle, take the place of the run's: so it says what a mistake gives.
    """
    simulated = lru_cache(maxsize=64)(simulate)

    def oracle(run: Run, rank: int, **instead: Any) -> Values:
        return simulated(run.world_size, **run.case.options | instead)[rank]

    return oracle


def same_bits(group: str, what: str) -> Claim:
    """A claim: all ranks have the same bits in each tensor of this group. ``what`` names one."""

    def claim(run):
        of_all = zip(*(report[group] for report in run.returned), strict=True)
        return next(filter(None, (same(what, list(got)) for got in of_all)), None)

    return claim


def holds_at_most(limits: Callable[[Run, int], Iterable[tuple[str, float, float, str]]]) -> Claim:
    """A claim: of ``limits(run, rank)``, ``(when, bytes held, bytes due, hint)`` each, none is exceeded."""

    def reasons(run: Run) -> Iterator[str]:
        for rank in range(run.world_size):
            for when, held, due, hint in limits(run, rank):
                if held > due:
                    yield f"{when} rank {rank} holds {held:,.0f} bytes, where {due:,.0f} would do: {hint}"

    return lambda run: next(reasons(run), None)


def in_order(moments: Callable[[Run, int], Iterable[tuple[float, float, str]]]) -> Claim:
    """A claim: of ``moments(run, rank)``, ``(earlier, later, what is wrong if not)`` each, all are in this order."""

    def claim(run):
        of_ranks = ((rank, *each) for rank in range(run.world_size) for each in moments(run, rank))
        return next((f"on rank {rank} {why}" for rank, earlier, later, why in of_ranks if earlier > later), None)

    return claim


def nothing_said(key: str) -> Claim:
    """A claim: no rank reports under this key, in words, what is wrong."""

    def claim(run):
        said = [(rank, report[key]) for rank, report in enumerate(run.returned) if report[key]]
        return f"on rank {said[0][0]} {said[0][1][0]}" if said else None

    return claim
