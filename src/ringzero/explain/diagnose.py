"""Why a call is stuck, in one sentence: who waits where, and who is missing.

``state`` puts the ranks' records side by side, ``disagreements`` and ``waits`` look for a cause in them, ``sentences``
says it. This module decides in which order causes are looked for, and when a wait is hopeless.
"""

from ringzero.explain.causes import BehindOthers
from ringzero.explain.disagreements import disagreement, group_of_some, lines_disagree, out_of_step
from ringzero.explain.queues import Queues
from ringzero.explain.sentences import sentence
from ringzero.explain.state import RankState, may_end
from ringzero.explain.waits import handle_dropped, never_waited, not_communicating, waiting_for_one_another


def behind_others(ranks: list[RankState]) -> BehindOthers | None:
    """Where operations go through queues: ends that are all there, and never run at once."""
    if not any(rank.queued for rank in ranks):
        return None
    queues = Queues([rank.communication for rank in ranks])
    waits = [(op, *behind) for op in queues.stuck() for behind in queues.behind(op)]
    return BehindOthers(waits) if waits else None


IN_ORDER = (  # the surest first
    group_of_some,
    out_of_step,
    disagreement,
    behind_others,
    lines_disagree,
    never_waited,
    waiting_for_one_another,
    handle_dropped,
    not_communicating,
)


def diagnose(ranks: list[RankState]) -> str | None:
    """Why ``ranks`` do not get on, in a sentence; None when nothing recorded explains it."""
    return _first(ranks, IN_ORDER)


def difference(ranks: list[RankState]) -> str | None:
    """Where ranks of which one failed first called different things, even if it did no harm there; else None."""
    return _first(ranks, (out_of_step, disagreement))


def deadlocked(ranks: list[RankState]) -> bool:
    """Whether no running rank can ever get on: all wait, and by the records nobody is left to end any of the waits."""
    running = [r for r, rank in enumerate(ranks) if rank.state == "running"]
    if not running or _is_cut(ranks) or any(ranks[r].stuck_in is None for r in running):
        return False
    if any(rank.queued for rank in ranks):
        queues = Queues([rank.communication for rank in ranks])
        return not any(queues.is_done(ranks[r].stuck_in) for r in running)  # type: ignore[arg-type]
    hopeless = never_waited(ranks) or disagreement(ranks)
    return hopeless is not None or not any(may_end(ranks, r) for r in running)


def _is_cut(ranks):
    """Whether a rank did more than its records hold, so that nobody can tell what it did last."""
    return any(op.missing for rank in ranks for op in rank.operations[-1:])


def _first(ranks, finders):
    if _is_cut(ranks):
        return None
    causes = (find(ranks) for find in finders)
    return next((sentence(cause, ranks) for cause in causes if cause is not None), None)
