"""Which rank the others wait for, and why it comes late."""

import statistics
from typing import NamedTuple

from ringzero.profiles.accounts import Account, meetings, total
from ringzero.profiles.profile import Profile
from ringzero.record.spans import length, union

# A rank is named when most of what anybody waits for the last to come is for it, and that is worth mending.
MOST_OF_THE_WAITING, WORTH_MENDING = 0.6, 0.03


class Straggler(NamedTuple):
    """The rank for which the others waited most.

    ``named``      whether it is a straggler; else the ranks take turns, or it costs next to nothing
    ``last_in``    of ``out_of`` collectives and messages it was the last to enter
    ``late``       seconds by which it came later than the median of the others, where it was last: their median
    ``cost``       seconds in which others had entered and it was the last that had not
    ``share``      of the time in which any rank was the last; ``of_the_time``, of all that was profiled
    ``why``        a sentence
    """

    rank: int
    named: bool
    last_in: int
    out_of: int
    late: float
    cost: float
    share: float
    of_the_time: float
    why: str


def straggler(profiles: list[Profile], accounts: list[Account]) -> Straggler | None:
    """The rank that the others wait for most, from profiles on one clock; None where no two ranks met."""
    met = meetings(profiles)
    if not met:
        return None
    late: dict[int, list[float]] = {profile.rank: [] for profile in profiles}
    blamed: dict[int, list[tuple[float, float]]] = {profile.rank: [] for profile in profiles}
    for ops in met.values():
        others = statistics.median(op.start for op in ops[:-1])
        late[ops[-1].rank].append(ops[-1].start - others)
        blamed[ops[-1].rank].append((others, ops[-1].start))
    costs = {rank: length(union(spans)) for rank, spans in blamed.items()}
    of_all = sum(costs.values())
    rank = max(costs, key=lambda rank: costs[rank])
    seconds = max(total(a for a in accounts if a.rank == p.rank).seconds for p in profiles)
    share = costs[rank] / of_all if of_all else 0.0
    of_the_time = costs[rank] / seconds if seconds else 0.0
    return Straggler(
        rank,
        share >= MOST_OF_THE_WAITING and of_the_time >= WORTH_MENDING,
        len(late[rank]),
        len(met),
        statistics.median(late[rank] or [0.0]),
        costs[rank],
        share,
        of_the_time,
        _why(rank, accounts, statistics.median(late[rank] or [0.0])),
    )


def _why(rank: int, accounts: list[Account], late: float) -> str:
    """What the rank does longer than the others, by a good part of what it is late: compute, or nothing to be seen."""
    totals = [total(a for a in accounts if a.rank == r) for r in sorted({a.rank for a in accounts})]
    steps = max(len([a for a in accounts if a.rank == rank]), 1)
    mine = next(each for each in totals if each.rank == rank)
    others = [each for each in totals if each.rank != rank]
    computing, idle = (
        (getattr(mine, what) / steps, statistics.median(getattr(each, what) for each in others) / steps)
        for what in ("computing", "idle")
    )
    longer = {"computing": computing[0] - computing[1], "idle": idle[0] - idle[1]}
    each = " a step" if steps > 1 else ""

    def compared(pair):
        return f"{ms(pair[0])} ms{each}, the others {ms(pair[1])} ms"

    if longer["computing"] >= max(longer["idle"], late / 4):
        return f"It computes longer: {compared(computing)}"
    if longer["idle"] >= late / 4:
        return (
            f"It starts later: it computes {compared(computing)}, and does nothing that the trace shows for "
            f"{compared(idle)}; look for its data, its Python code, another process"
        )
    return f"Neither its computing ({compared(computing)}) nor its idle time ({compared(idle)}) explains it"


def ms(seconds: float) -> str:
    """Milliseconds, three digits."""
    value = abs(seconds * 1e3)
    return f"{seconds * 1e3:.{0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3}f}"
