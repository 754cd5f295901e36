"""Whether the ranks of a running call can still finish, or wait for one another for ever."""

import time
from collections.abc import Callable, Iterable
from math import inf
from pathlib import Path

from ringzero.explain import diagnose, report
from ringzero.record import trace_file

LOOK_SECONDS = 0.1  # between two looks at the ranks
STILL_SECONDS = 1.0  # how long nothing may have moved before a wait counts as endless
IDLE = 0.02  # of a second: a process that computed less meanwhile was asleep; its clock ticks in hundredths


class Watch:
    """Watches the ranks of one call by reading their records, which costs the ranks nothing.

    A slow rank is no deadlock: it computes or sleeps, so it does not wait. Only when every rank that has not returned
    waits in an operation, and none has moved for a while, are the records compared: can any of these waits still end?

    Torch's C++ code waits unseen, as in the backward pass of its DDP. Such a rank counts as waiting if it sleeps there:
    ``ask(ranks)`` has these ranks write their stacks, and ``cpu_seconds(rank)`` is what its processes have computed.

    Where a rank has more Python threads than one, another may do what it waits for. So it counts as waiting only once
    nothing has moved for ``still_with_threads`` seconds.
    """

    def __init__(
        self,
        call: Path,
        world_size: int,
        ask: Callable[[Iterable[int]], None],
        cpu_seconds: Callable[[int], float],
        still_with_threads: float = inf,
    ):
        self._call, self._world_size = call, world_size
        self._ask, self._cpu_seconds = ask, cpu_seconds
        self._still_with_threads = still_with_threads
        self._seen: dict | None = None
        self._since = 0.0
        self._computed: dict[int, float] = {}  # when a rank was first seen to wait unseen

    def deadlocked(self, running: Iterable[int]) -> bool:
        """Whether no rank of ``running`` can ever return."""
        unfinished = [rank for rank in running if not (self._call / f"{rank}.result").exists()]
        seen = {rank: trace_file.waiting(self._call / f"{rank}.trace") for rank in unfinished}
        now = time.monotonic()
        if seen != self._seen:
            self._seen, self._since, self._computed = seen, now, {}
        waits = [wait for wait in seen.values() if wait is not None]
        still = STILL_SECONDS if all(wait.threads == 1 for wait in waits) else self._still_with_threads
        if not seen or len(waits) < len(seen) or now - self._since < still:
            return False
        if not self._all_asleep([rank for rank, wait in seen.items() if wait is not None and wait.unseen]):
            return False
        self._since = float("inf")  # while nothing moves the answer stays the same
        states = report.states_of(self._call, self._world_size)
        return diagnose.deadlocked([states[rank] for rank in range(self._world_size)])

    def _all_asleep(self, unseen):
        """Whether the ranks that only torch can have wait do so: for ``STILL_SECONDS`` they have computed nothing."""
        computed = {rank: self._cpu_seconds(rank) for rank in unseen}
        if any(seconds - self._computed.get(rank, -1.0) > IDLE for rank, seconds in computed.items()):
            self._computed, self._since = computed, time.monotonic()
            self._ask(unseen)
            return False
        return all(report.is_in_torch(self._call, rank) for rank in unseen)
