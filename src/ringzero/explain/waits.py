"""Ranks that wait for one another: for whom, and who keeps all of them waiting.

Where ranks wait in circles, the smallest set of ranks whose removal breaks every circle is to blame.
"""

from typing import NamedTuple

from ringzero.explain.state import RankState, is_met, rounds
from ringzero.explain.words import Numbered, doing, instead, lines_of, names, standing_apart, verb
from ringzero.record.operation import RINGZERO, Operation, pairs


class NotExchanged(NamedTuple):
    """``rank`` waits for a message of ``peers``, which have exchanged so many ``messages`` with it."""

    rank: int
    waits_in: Operation
    peers: list[int]
    messages: int

    def __str__(self) -> str:
        did = "sent" if self.waits_in.kind == "recv" else "received from"
        so_far = f"only {self.messages} message{'s' * (self.messages != 1)}" if self.messages else "nothing"
        return f"{names(self.peers) if len(self.peers) == 1 else 'all ranks'} {did} rank {self.rank} {so_far}"


class MessageMissing(NamedTuple):
    """A message lacks its other end; ``absent`` are ranks that wait for one or should have posted one.

    ``apart`` are the ranks to blame where all others have returned, so that nobody can come any more.
    """

    missing: NotExchanged
    absent: list[int]
    apart: list[int]

    def sentence(self, ranks: list[RankState]) -> str:
        return f"{standing_apart(self.apart)}{self.missing}; {instead(ranks, self.absent)}."


class NeverEntered(NamedTuple):
    """Ranks ``missing`` did not come to a collective in which ranks ``there`` wait at ``lines``; ``apart`` as above."""

    missing: list[int]
    there: list[int]
    entered: Numbered
    lines: str
    apart: list[int]

    def sentence(self, ranks: list[RankState]) -> str:
        there = f"{names(self.there)} {verb(self.there, 'waits', 'wait')} there, {self.lines}"
        call = self.entered.call
        which = f", {call.called}" if call.kind == RINGZERO else ""
        return (
            f"{standing_apart(self.apart)}{names(self.missing)} never entered {self.entered}{which}; {there}; "
            f"{instead(ranks, self.missing)}."
        )


class Alone(NamedTuple):
    """A rank waits for a message, and ``others``, from which it could come, have returned."""

    missing: NotExchanged
    others: list[int]

    def sentence(self, ranks: list[RankState]) -> str:
        rank, call = self.missing.rank, self.missing.waits_in
        return f"rank {rank} {doing(call)}, {call.line}, but {self.missing}; {instead(ranks, self.others)}."


class Cycle(NamedTuple):
    """Each rank of ``cycle`` waits for the next one and the last for the first; ``others`` wait for the first too.

    ``waits`` says for whom each rank waits. ``astray`` is a receive that the rank for whom the first one waits has
    posted from another rank. With ``all_send`` and without ``astray``, no rank of the cycle receives yet.
    """

    cycle: list[int]
    others: list[int]
    waits: dict[int, set[int]]
    all_send: bool
    astray: Operation | None = None

    def sentence(self, ranks: list[RankState]) -> str:
        advice = ""
        if self.astray is not None:
            first, op = self.cycle[0], self.astray
            advice = (
                f" Rank {op.rank} has posted a receive, from rank {op.peer_rank} and not from rank {first}, {op.line}."
            )
        elif self.all_send:
            advice = " Start the send and the receive of a round together, with dist.batch_isend_irecv."
        return f"a cycle: {instead(ranks, [*self.cycle, *self.others], self.waits)}.{advice}"


class NotCommunicating(NamedTuple):
    """These ranks wait for no message, and have not returned."""

    ranks: list[int]

    def sentence(self, ranks: list[RankState]) -> str:
        busy = self.ranks
        return f"{names(busy)} {verb(busy, 'is', 'are')} in no communication and not done: {instead(ranks, busy)}."


def not_communicating(ranks: list[RankState]) -> NotCommunicating | None:
    """Nobody waits for a message that will not come, yet somebody has not returned."""
    busy = [r for r, rank in enumerate(ranks) if rank.state == "running" and rank.stuck_in is None]
    return NotCommunicating(busy) if busy else None


def waiting_for_one_another(ranks: list[RankState]) -> MessageMissing | NeverEntered | Alone | Cycle | None:
    """Who keeps the others waiting: a rank that waits for nobody, or else the fewest that break all circles.

    Where there are several such sets, the blame goes to the one that left out a call which others made; else to the one
    that most others wait for.
    """
    waits = _waits_for(ranks)
    waited_by = {r: {w for w in waits if r in waits[w]} for r in waits}
    if idle := [r for r, rank in enumerate(ranks) if waited_by[r] and rank.state != "returned" and not rank.stuck_in]:
        return _never_came(ranks, waits, idle)
    # Ranks that wait for the same ranks, and for which the same ranks wait, are blamed together.
    parties: dict[tuple, list[int]] = {}
    for r in waits:
        parties.setdefault((frozenset(waits[r]), frozenset(waited_by[r])), []).append(r)
    breaking = [party for party in parties.values() if not _in_circles(waits, without=party)]
    if not breaking or not _in_circles(waits):
        return None
    fewest = [party for party in breaking if len(party) == min(map(len, breaking))]
    left_out, needed_by = {r: _left_out(ranks, r) for r, *_ in fewest}, _needed_by(ranks, waited_by)
    culprits = max(fewest, key=lambda p: (left_out[p[0]], len(needed_by[p[0]]), ranks[p[0]].state == "returned"))
    sure = len(fewest) == 1 or left_out[culprits[0]] > 0
    if all(ranks[w].state == "returned" for r in culprits for w in waited_by[r]):
        return _waits_alone(ranks, waits, culprits, sure)
    if sure or ranks[culprits[0]].state == "returned":
        return _never_came(ranks, waits, culprits)
    return _cycle(ranks, waits, culprits[0])


def never_posted(ranks: list[RankState]) -> MessageMissing | NeverEntered | None:
    """The earliest wait whose other end a rank did not post, though it went on.

    Where calls only issue, as on NCCL, a rank that left one out may itself wait in a later one, to which all have come.
    """
    waits = _waits_for(ranks)
    stuck = [(rank.stuck_call, waits[r]) for r, rank in enumerate(ranks) if waits[r] and rank.stuck_call is not None]
    if not stuck:
        return None
    call, missing = min(stuck, key=lambda each: each[0].start)
    return _never_came(ranks, waits, sorted(missing), sorted(missing) if call.is_message else ())


def _waits_for(ranks):
    """``{rank: the ranks it waits for and that have not come}``. One that has returned waits for all to return."""
    unfinished = {r for r, rank in enumerate(ranks) if rank.state != "returned"}
    waits = {r: set() if r in unfinished else unfinished for r in range(len(ranks))}
    for r, rank in enumerate(ranks):
        op = rank.stuck_in
        if op is not None and op.is_message and not is_met(ranks, r):
            waits[r] = set(op.members) - {r} if op.peer_rank is None else {op.peer_rank}
    for round in rounds(ranks, incomplete=True):
        missing = set(round.members) - round.here.keys()
        for r, op in round.here.items():
            if ranks[r].stuck_call is op:
                waits[r] = missing
    return waits


def _in_circles(waits, without=()):
    """What is left of ``waits`` when, again and again, those who wait for nobody are taken out."""
    waits = {r: others for r, others in waits.items() if r not in without}
    while free := [r for r, others in waits.items() if not others & waits.keys()]:
        for r in free:
            del waits[r]
    return waits


def _left_out(ranks, r):
    """How many ranks passed a collective without ``r`` before they came to where ``r`` is now: ``r`` left it out.

    A rank may pass a collective in which others wait, as most ranks do in a broadcast.
    """
    incomplete = list(rounds(ranks, incomplete=True))
    now = next((round.here for round in incomplete if round.here.get(r) is ranks[r].stuck_call), {})
    returned = ranks[r].state == "returned"
    return sum(
        returned or (other in now and op.start < now[other].start)
        for round in incomplete
        for other, op in round.here.items()
        if r in round.members and r not in round.here and ranks[other].stuck_call is not op
    )


def _needed_by(ranks, waited_by):
    """``waited_by``, and the ranks that have posted messages without another end, for which they may wait later."""
    needed_by = {r: set(others) for r, others in waited_by.items()}
    for (src, dst, *_), (sends, receives) in pairs(rank.calls for rank in ranks).items():
        if len(sends) > len(receives):
            needed_by[dst].add(src)
        elif len(receives) > len(sends):
            needed_by[src].add(dst)
    return needed_by


def _never_came(ranks, waits, culprits, apart=()):
    """What the culprits did not come to."""
    waiting = [r for r in waits if waits[r] and waits[r] <= set(culprits) and ranks[r].stuck_in is not None]
    waiting = waiting or [r for r in waits if waits[r] & set(culprits) and ranks[r].stuck_in is not None]
    if not waiting:
        return None
    first = min(waiting, key=lambda r: ranks[r].stuck_call.start)
    call = ranks[first].stuck_call
    if call.is_message:
        ends = [r for r in waiting if ranks[r].stuck_call.is_message]
        return MessageMissing(_not_exchanged(ranks, first), [*ends, *culprits], list(apart))
    for round in rounds(ranks, incomplete=True):
        if round.here.get(first) is call:
            there = [r for r in round.here if ranks[r].stuck_call is round.here[r]]
            missing = [r for r in round.members if r not in round.here]
            entered, lines = Numbered.of(round.called[first], round.place), lines_of([round.here[r] for r in there])
            return NeverEntered(missing, there, entered, lines, list(apart))
    return None


def _waits_alone(ranks, waits, culprits, sure):
    """All others have returned, so nobody can come any more."""
    first, others = culprits[0], sorted(waits[culprits[0]])
    if ranks[first].stuck_call.is_message:
        return Alone(_not_exchanged(ranks, first), others)
    return _never_came(ranks, waits, others, apart=culprits if sure else ())


def _not_exchanged(ranks, r):
    """How many of the messages that rank ``r`` waits for its peer sent or received."""
    op = ranks[r].stuck_call
    other_end = "send" if op.kind == "recv" else "recv"
    peers = list(range(len(ranks))) if op.peer_rank is None else [op.peer_rank]
    count = sum(1 for peer in peers for o in ranks[peer].calls if (o.kind, o.peer_rank) == (other_end, r))
    return NotExchanged(r, op, peers, count)


def _cycle(ranks, waits, start):
    """The shortest circle of ranks that wait for one another, beginning with ``start``."""
    via, reached = {}, [start]
    for r in reached:
        for other in sorted(waits[r] - via.keys()):
            via[other] = r
            reached.append(other)
    if start not in via:
        return None
    cycle = [via[start]]
    while cycle[0] != start:
        cycle.insert(0, via[cycle[0]])
    kinds = {ranks[r].stuck_call.kind for r in cycle if ranks[r].stuck_call}
    others = [r for r in waits if waits[r] == {start} and r not in cycle and ranks[r].stuck_call.is_message]
    all_send = kinds == {"send"}
    return Cycle(cycle, others, waits, all_send, _receive_astray(ranks, cycle) if all_send else None)


def _receive_astray(ranks, cycle):
    """A receive that is posted where the first rank of the cycle waits to send to, and from another rank."""
    src, dst = cycle[0], ranks[cycle[0]].stuck_call.peer_rank
    open_ones = [op for op in ranks[dst].calls if op.kind == "recv" and op.end is None]
    return next((op for op in open_ones if op.peer_rank not in (None, src)), None)
