"""Whether the ranks of a running call can still finish, or wait for one another for ever."""

import time
from collections.abc import Iterable
from pathlib import Path

from ringzero.explain import diagnose, report
from ringzero.record import trace_file

LOOK_SECONDS = 0.1  # between two looks at the ranks
STILL_SECONDS = 1.0  # how long nothing may have moved before a wait counts as endless


class Watch:
    """Watches the ranks of one call by reading their records, which costs the ranks nothing.

    A slow rank is no deadlock: it computes or sleeps, so it does not wait. Only when every rank that has not returned
    waits in an operation, and none has moved for a while, are the records compared: can any of these waits still end?
    """

    def __init__(self, call: Path, world_size: int):
        self._call, self._world_size = call, world_size
        self._seen: dict | None = None
        self._since = 0.0

    def deadlocked(self, running: Iterable[int]) -> bool:
        """Whether no rank of ``running`` can ever return."""
        unfinished = [rank for rank in running if not (self._call / f"{rank}.result").exists()]
        seen = {rank: trace_file.waiting(self._call / f"{rank}.trace") for rank in unfinished}
        now = time.monotonic()
        if seen != self._seen:
            self._seen, self._since = seen, now
        if not seen or None in seen.values() or now - self._since < STILL_SECONDS:
            return False
        self._since = float("inf")  # while nothing moves the answer stays the same
        states = report.states_of(self._call, self._world_size)
        return diagnose.deadlocked([states[rank] for rank in range(self._world_size)])
