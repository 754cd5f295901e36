"""Why a call is stuck, in one sentence: who waits where, and who is missing.

A *cause* is a class that holds the facts and says them (``sentence``), beside the function that looks for it in the
records of all ranks (``state``). Here is the order in which causes are looked for, and when a wait is hopeless.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

from ringzero.explain import behind, disagreements, handles, waits
from ringzero.explain.queues import Queues
from ringzero.explain.state import RankState, may_end


class Cause(Protocol):
    """What is the case."""

    def sentence(self, ranks: list[RankState]) -> str:
        """It in words, which name ranks and lines; ``ranks`` say what each rank is doing instead."""


Finder = Callable[[list[RankState]], Cause | None]
IN_ORDER: list[Finder] = [  # the surest first
    disagreements.group_of_some,
    disagreements.out_of_step,
    disagreements.disagreement,
    behind.behind_others,
    disagreements.lines_disagree,
    handles.never_waited,
    waits.waiting_for_one_another,
    handles.handle_dropped,
    waits.not_communicating,
]

OF_OTHERS: list[Finder] = [  # in records that others made, which hold neither stacks nor handles
    disagreements.out_of_step,
    disagreements.disagreement,
    waits.waiting_for_one_another,
    waits.never_posted,
    behind.behind_others,
]


def diagnose(ranks: list[RankState]) -> str | None:
    """Why ``ranks`` do not get on, in a sentence; None when nothing recorded explains it."""
    return _first(ranks, IN_ORDER)


def cause(ranks: list[RankState], finders: Iterable[Finder] = IN_ORDER) -> Cause | None:
    """The first cause that ``finders`` see; None when nothing recorded explains it."""
    if _is_cut(ranks):
        return None
    causes = (find(ranks) for find in finders)
    return next((cause for cause in causes if cause is not None), None)


def difference(ranks: list[RankState]) -> str | None:
    """Where ranks of which one failed first called different things, even if it did no harm there; else None."""
    return _first(ranks, (disagreements.out_of_step, disagreements.disagreement))


def deadlocked(ranks: list[RankState]) -> bool:
    """Whether no running rank can ever get on: all wait, and by the records nobody is left to end any of the waits."""
    running = [r for r, rank in enumerate(ranks) if rank.state == "running"]
    if not running or _is_cut(ranks) or any(ranks[r].stuck_in is None for r in running):
        return False
    if any(rank.queued for rank in ranks):
        queues = Queues([rank.communication for rank in ranks])
        return not any(queues.is_done(ranks[r].stuck_in) for r in running)  # type: ignore[arg-type]
    if handles.never_waited(ranks) or disagreements.disagreement(ranks):
        return True
    return not any(may_end(ranks, r) for r in running)


def _is_cut(ranks):
    """Whether a rank did more than its records hold, so that nobody can tell what it did last."""
    return any(op.missing for rank in ranks for op in rank.operations[-1:])


def _first(ranks: list[RankState], finders: Iterable[Finder]) -> str | None:
    found = cause(ranks, finders)
    return None if found is None else found.sentence(ranks)
