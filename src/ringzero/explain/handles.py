"""Messages that were posted and never waited for. Dropping the handle of one cancels it."""

from typing import NamedTuple

from ringzero.explain.state import RankState, unwaited
from ringzero.explain.words import doing
from ringzero.record.operation import Operation


class NeverWaited(NamedTuple):
    """``posted`` is a message that its rank did not wait for, which cancels it; ``answer`` is the other end.

    Either the rank ``returned``, or it may have dropped the handle.
    """

    posted: Operation
    answer: Operation
    returned: bool

    def sentence(self, ranks: list[RankState]) -> str:
        posted, answer, returned = self
        begin = f"rank {posted.rank} posted a {posted.kind}, {posted.line}, and"
        if returned:
            how = "returned without waiting for it, which cancels it"
            return f"{begin} {how}; rank {answer.rank} {doing(answer)}, {answer.line}."
        how = "never waited for it: dropping its handle cancels it"
        return f"{begin} {how}; rank {answer.rank} posted the other end, {answer.line}."


def never_waited(ranks: list[RankState]) -> NeverWaited | None:
    """A rank waits for a message whose other end will never be waited for: its rank returned, or dropped the handle."""
    for posted, answer in unwaited(ranks):
        returned = ranks[posted.rank].state == "returned"
        if (returned or posted.dropped) and ranks[answer.rank].stuck_in is answer:
            return NeverWaited(posted, answer, returned)
    return None


def handle_dropped(ranks: list[RankState]) -> NeverWaited | None:
    """A message that nobody waited for, on a rank that went on. It may still hold the handle, so ask this last."""
    first = min(unwaited(ranks), key=lambda ends: ends[0].start, default=None)
    return None if first is None else NeverWaited(*first, returned=False)
