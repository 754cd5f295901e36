"""What the ranks of a call had done when it ended: their operations, side by side.

Works on plain data, after the fact: what each rank recorded (``ringzero.record``), whether it had returned, and where
its Python stack was. Two rules match the operations of different ranks. The k-th collective of a group on one rank
belongs to the k-th on every other. The k-th send from a to b meets b's k-th receive from a.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from ringzero.record.operation import COMMUNICATION, HEADER, Operation, calls, pairs


class Collectives(list[Operation]):
    """One rank's collectives in a group, in order. ``lacking`` others came before them and are not recorded."""

    lacking = 0


@dataclass(frozen=True)
class RankState:
    """One rank when the call ended. ``state`` is "running", "returned" or "gone"; ``operations`` are its records.

    ``where`` is the innermost of the caller's own lines on its stack, ``functions`` the names of torch's functions
    above it. ``queued``: what it issues goes through queues as on NCCL (``queues``). ``lacking`` says of groups, by the
    keys of ``collectives``, how many of their collectives came before the first one recorded, on every rank.
    """

    state: str
    operations: list[Operation]
    where: str = "an unknown place"
    functions: tuple[str, ...] = ()
    queued: bool = False
    lacking: Mapping[tuple, int] = field(default_factory=dict)

    @cached_property
    def communication(self) -> list[Operation]:
        """What this rank communicated. What it computed explains no wait."""
        return [op for op in self.operations if op.stream == COMMUNICATION]

    @cached_property
    def stuck_in(self) -> Operation | None:
        """The operation this rank waits for now, or None."""
        if self.state != "running":
            return None
        waiting = [op for op in self.communication if op.wait is not None and op.end is None]
        return max(waiting, key=lambda op: op.wait, default=None)  # type: ignore[arg-type, return-value]

    @cached_property
    def calls(self) -> list[Operation]:
        """The operations as the caller made them: one for all messages of a collective of ringzero's own."""
        return calls(self.communication)

    @cached_property
    def collectives(self) -> dict[tuple, Collectives]:
        """``{(group, *its ranks): calls}``. The ranks are part of the key because ranks that created groups in
        different orders may have given one name to different groups.
        """
        groups: dict[tuple, Collectives] = {}
        for call in self.calls:
            if not call.is_message:
                groups.setdefault((call.group, *call.members), Collectives()).append(call)
        for key, called in groups.items():
            called.lacking = self.lacking.get(key, 0)
        return groups

    @cached_property
    def stuck_call(self) -> Operation | None:
        """The call this rank waits in now, or None."""
        stuck_in = self.stuck_in
        calls = reversed(self.calls) if stuck_in is not None else ()
        return next((call for call in calls if any(op is stuck_in for op in call.parts or (call,))), None)


class Round(NamedTuple):
    """The collectives that ranks of a group made at one place in their order, which should be one and the same."""

    members: list[int]  # of the group
    called: dict[int, Collectives]  # rank -> all its collectives in the group
    place: int
    here: dict[int, Operation]  # rank -> its collective number ``place``; without the ranks that have not come so far


def collectives_of_groups(ranks: list[RankState]) -> Iterator[tuple[list[int], dict[int, Collectives]]]:
    """``(members, {rank: its collectives})`` of each group."""
    for group, *members in dict.fromkeys(group for rank in ranks for group in rank.collectives):
        yield members, {r: ranks[r].collectives.get((group, *members), Collectives()) for r in members}


def rounds(ranks: list[RankState], incomplete: bool = False) -> Iterator[Round]:
    """Each group's collectives side by side; with ``incomplete`` only those to which some member has not come."""
    for members, called in collectives_of_groups(ranks):
        counts = [len(calls) for calls in called.values()]
        for place in range(min(counts, default=0) if incomplete else 0, max(counts, default=0)):
            yield Round(members, called, place, {r: calls[place] for r, calls in called.items() if place < len(calls)})


def is_met(ranks: list[RankState], r: int) -> bool:
    """Whether the other end of the message rank ``r`` waits for has been posted."""
    return other_end(ranks, r) is not None


def other_end(ranks: list[RankState], r: int) -> Operation | None:
    """The other end of the message rank ``r`` waits for, or None if it has not been posted."""
    op = ranks[r].stuck_in
    assert op is not None
    for sends, receives in pairs(rank.communication for rank in ranks).values():
        mine, theirs = (sends, receives) if op.kind == "send" else (receives, sends)
        for number, each in enumerate(mine):
            if each is op:
                return theirs[number] if len(theirs) > number else None
    return None


def may_end(ranks: list[RankState], r: int) -> bool:
    """Whether the operation that rank ``r`` waits in has all it needs from other ranks, so that it may just be slow."""
    op = ranks[r].stuck_in
    assert op is not None
    if op.is_message:
        return op.peer_rank is None or ((other := other_end(ranks, r)) is not None and not other.dropped)
    if op.kind == HEADER and op.peer_rank is not None:
        # The records do not tell sent and received headers apart; each end has one of each.
        mine, theirs = _headers(ranks[r], op.peer_rank), _headers(ranks[op.peer_rank], r)
        return len(theirs) > next(i for i, o in enumerate(mine) if o is op)
    for round in rounds(ranks):
        if round.here.get(r) is op:
            lost_in_it = any(ranks[member].state == "gone" and call.end is None for member, call in round.here.items())
            return len(round.here) == len(round.members) and not lost_in_it
    return True


def _headers(rank, peer):
    return [op for op in rank.communication if op.kind == HEADER and op.peer_rank == peer]


def unwaited(ranks: list[RankState]) -> Iterator[tuple[Operation, Operation]]:
    """Messages that have both ends, of which one was never waited for: ``(that end, the other end)``."""
    for sends, receives in pairs(rank.calls for rank in ranks).values():
        for sent, received in zip(sends, receives, strict=False):
            if sent.wait is None and received.wait is not None:
                yield sent, received
            if received.wait is None and sent.wait is not None:
                yield received, sent
