"""Causes in records that lack something, such as torch's own: the root of a broadcast, the members of a group, all that
one rank did, and which ranks have returned.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ringzero.explain.state import RankState, rounds
from ringzero.explain.words import Numbered, instead, last_call, lines_of, names, verb
from ringzero.record.operation import Operation

ROOTED = ("broadcast", "reduce", "gather", "scatter")


class Unseen(NamedTuple):
    """Ranks of a group of which nothing is recorded: ``without_record``, and others that may be ``members``."""

    without_record: Sequence[int] = ()
    members: Sequence[int] = ()


class AllThere(NamedTuple):
    """Ranks ``waiting`` wait in a collective to which all recorded ranks of the group came."""

    waiting: list[int]
    entered: Numbered
    lines: str
    unseen: Unseen

    def sentence(self, ranks: list[RankState]) -> str:
        without, members = self.unseen
        waiting = f"{names(self.waiting)} {verb(self.waiting, 'waits', 'wait')}"
        if without:
            return (
                f"{names(without)} left no record; {waiting} in {self.entered}, {self.lines}, and nothing tells "
                f"whether {names(without)} came."
            )
        if members:
            it = f"rank {members[0]} does" if len(members) == 1 else "one of them does"
            return (
                f"{names(members)} never used the group of {self.entered}; {waiting} there, {self.lines}. The record "
                f"does not say who belongs to the group; if {it}, it never came."
            )
        came = f"{waiting} in {self.entered}, {self.lines}, to which all ranks of the group came"
        if self.entered.call.kind in ROOTED:
            return f"{came}. The record does not hold the root: do all ranks name the same one?"
        return f"{came}. None called anything else, so they are slow, or the network or a device is at fault."


def all_there(ranks: list[RankState], unseen: Mapping[tuple, Unseen]) -> AllThere | None:
    """The earliest such collective; first one whose group has ``unseen`` ranks (by the keys of ``collectives``)."""
    found: list[tuple[bool, float, AllThere]] = []
    for round in rounds(ranks):
        waiting = [r for r, op in round.here.items() if ranks[r].stuck_call is op]
        if waiting and len(round.here) == len(round.members):
            call: Operation = round.here[waiting[0]]
            missing = unseen.get((call.group, *call.members), Unseen())
            entered = Numbered.of(round.called[waiting[0]], round.place)
            lines = lines_of([round.here[r] for r in waiting])
            found.append((not any(missing), call.start, AllThere(waiting, entered, lines, missing)))
    return min(found, key=lambda each: each[:2])[2] if found else None


class Passed(NamedTuple):
    """Ranks ``missing`` did not come to a collective that ranks ``there`` have left again, as a root may."""

    missing: list[int]
    there: list[int]
    entered: Numbered
    lines: str

    def sentence(self, ranks: list[RankState]) -> str:
        return (
            f"{names(self.missing)} never entered {self.entered}; {names(self.there)} passed it, {self.lines}; "
            f"{instead(ranks, self.missing)}."
        )


def passed(ranks: list[RankState]) -> Passed | None:
    """The earliest collective that some ranks of its group have left, and to which others did not come."""
    rounds_by_start = [(min(op.start for op in round.here.values()), round) for round in rounds(ranks, incomplete=True)]
    if not rounds_by_start:
        return None
    _, round = min(rounds_by_start, key=lambda each: each[0])
    there = list(round.here)
    missing = [r for r in round.members if r not in round.here]
    return Passed(missing, there, Numbered.of(round.called[there[0]], round.place), lines_of([*round.here.values()]))


class NoRecord(NamedTuple):
    """Ranks ``missing`` left no record, and what the others did ended."""

    missing: list[int]

    def sentence(self, ranks: list[RankState]) -> str:
        last = max((rank for rank in ranks if rank.calls), key=lambda rank: rank.calls[-1].start, default=None)
        end = f"; the other ranks wait in nothing that was recorded{last_call(last)}" if last else ""
        return f"{names(self.missing)} left no record{end}. What failed counts as ended there."
