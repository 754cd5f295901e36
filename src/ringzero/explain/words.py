"""Words that sentences about ranks are made of: ranks, calls, and what each rank is doing instead."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ringzero.explain.state import Collectives, RankState
from ringzero.record.operation import Operation

SHOWN = 8  # ranks of which a sentence says what they do
NAMED = 16  # ranks that a sentence lists one by one


class Numbered(NamedTuple):
    """A call, and how many calls of its kind its rank had made in that group, this one included.

    Where a record lacks the group's first collectives nobody knows that; ``place`` then counts those of any kind.
    """

    call: Operation
    number: int
    place: int | None = None

    @classmethod
    def of(cls, calls: Collectives, index: int) -> "Numbered":
        """Call ``index`` of ``calls``, one rank's collectives in a group."""
        number = sum(1 for call in calls[: index + 1] if call.kind == calls[index].kind)
        return cls(calls[index], number, calls.lacking + index + 1 if calls.lacking else None)

    def __str__(self) -> str:
        """ "all_reduce #3": the third all_reduce of the group."""
        if self.place is not None:
            return f"{self.call.kind} (collective #{self.place} of its group)"
        return f"{self.call.kind} #{self.number}"


def lines_of(calls: list[Operation]) -> str:
    """The lines of ``calls``, each once."""
    return " and ".join(dict.fromkeys(call.line for call in calls))


def names(ranks: Sequence[int]) -> str:
    """ "rank 3", "ranks 0, 2, 5"; of many ranks those that follow one another as "0 to 511"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) <= NAMED:
        return f"ranks {', '.join(map(str, ranks))}"
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    said = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs[:SHOWN]]
    return f"ranks {', '.join(said)}" + (f" … ({len(ranks)} in all)" if len(runs) > SHOWN else "")


def verb(ranks: Sequence[int], one: str, many: str) -> str:
    return one if len(ranks) == 1 else many


def standing_apart(ranks: Sequence[int]) -> str:
    """How a sentence begins that blames ``ranks``; nothing if there are none."""
    return f"{names(ranks)} {verb(ranks, 'stands', 'stand')} apart: " if ranks else ""


def doing(call: Operation) -> str:
    """What a rank does that is stuck in this call."""
    if not call.is_message:
        return f"waits in {call.kind}"
    if call.peer_rank is None:
        return "waits to receive from any rank"
    return f"waits to {'send to' if call.kind == 'send' else 'receive from'} rank {call.peer_rank}"


def with_peer(call: Operation) -> str:
    """ "send to rank 1"; of a collective, its kind."""
    if not call.is_message:
        return call.kind
    return f"{call.kind} {'to' if call.kind == 'send' else 'from'} rank {call.peer_rank}"


def last_call(rank: RankState) -> str:
    """What the rank did last, as the end of a clause."""
    return f", last in {rank.calls[-1].kind}, {rank.calls[-1].line}" if rank.calls else ""


def instead(ranks: list[RankState], which: Sequence[int], waits: Mapping[int, set[int]] | None = None) -> str:
    """What ranks ``which`` are doing, who should be elsewhere; with ``waits``, also for whom they wait."""
    parts = []
    for r in which[:SHOWN]:
        rank, call = ranks[r], ranks[r].stuck_call
        if rank.state in ("returned", "gone"):
            parts.append(f"rank {r} had {'returned' if rank.state == 'returned' else 'ended'}{last_call(rank)}")
        elif call is None:
            parts.append(f"rank {r} is at {rank.where}")
        else:
            whom = f" for {names(sorted(waits[r]))}" if waits and waits[r] and not call.is_message else ""
            parts.append(f"rank {r} {doing(call)}{whom}, {call.line}")
    return "; ".join(parts) + (" …" if len(which) > SHOWN else "")
