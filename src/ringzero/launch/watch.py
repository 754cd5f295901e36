"""While a call runs: can its ranks still get anywhere, or does each of them wait for another?"""

import time

from ringzero.launch import diagnose, records, report

LOOK_SECONDS = 0.1  # between two looks at the ranks
STILL_SECONDS = 1.0  # how long nothing may have moved before a wait counts as endless


class Watch:
    """Watches the ranks of one call by their records alone, which costs them nothing.

    A slow rank is no deadlock: it computes or sleeps, so it does not wait. Only when all ranks that have not returned
    have stood still, each in an operation, is it asked whether anybody is left to end any of these.
    """

    def __init__(self, call, world_size):
        self._call, self._world_size = call, world_size
        self._seen, self._since = None, 0.0

    def deadlocked(self, running):
        """Whether no rank of ``running`` can ever return."""
        unfinished = [rank for rank in running if not (self._call / f"{rank}.result").exists()]
        seen = {rank: records.waiting(self._call / f"{rank}.trace") for rank in unfinished}
        now = time.monotonic()
        if seen != self._seen:
            self._seen, self._since = seen, now
        if not seen or None in seen.values() or now - self._since < STILL_SECONDS:
            return False
        self._since = float("inf")  # the same picture gives the same answer: it is not asked twice
        states = report.states_of(self._call, self._world_size)
        return diagnose.deadlocked([states[rank] for rank in range(self._world_size)])
