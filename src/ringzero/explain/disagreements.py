"""Ranks that did not call the same things. The first difference in a group is the fault; later ones follow from it."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ringzero.explain.state import RankState, Round, collectives_of_groups, rounds
from ringzero.explain.words import Numbered, instead, lines_of, names, standing_apart, verb
from ringzero.record import wire
from ringzero.record.operation import RINGZERO, Operation, pairs

SAME_SIZE = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter")  # bytes must agree on all ranks
OFTEN_SAME_SIZE = ("gather", "all_to_all")  # if they do not and a rank crashed, that is why


class GroupOfSome(NamedTuple):
    """Ranks ``inside`` wait in new_group, which ranks ``outside`` have not called."""

    inside: list[int]
    outside: list[int]

    def sentence(self, ranks: list[RankState]) -> str:
        return (
            f"{names(self.inside)} {verb(self.inside, 'waits', 'wait')} in new_group, {ranks[self.inside[0]].where}; "
            f"{instead(ranks, self.outside)}. Every rank must call new_group, also those that the group leaves out."
        )


def group_of_some(ranks: list[RankState]) -> GroupOfSome | None:
    """new_group that only some ranks called. It is not recorded: the stacks show who waits in it."""
    inside = [r for r, rank in enumerate(ranks) if not rank.stuck_in and "new_group" in rank.functions]
    outside = [r for r in range(len(ranks)) if r not in inside]
    return GroupOfSome(inside, outside) if inside and outside else None


class LeftOut(NamedTuple):
    """``rank`` left out a collective that all ``others`` called; it called ``instead``, the one after."""

    rank: int
    others: list[int]
    missed: Numbered
    instead: Operation

    def sentence(self, ranks: list[RankState]) -> str:
        return (
            f"rank {self.rank} left out {self.missed}; {names(self.others)} called it, {self.missed.call.line}; rank "
            f"{self.rank} called the next one in its place, {self.instead.line}."
        )


class OnceMore(NamedTuple):
    """``rank`` called a collective once more than all ``others``; they called ``instead``, the one after."""

    rank: int
    others: list[int]
    extra: Numbered
    instead: Operation

    def sentence(self, ranks: list[RankState]) -> str:
        extra, others = self.extra, names(self.others)
        return (
            f"rank {self.rank} called {extra}, {extra.call.line}, once more than {others}; {others} called the "
            f"next one in its place, {self.instead.line}."
        )


def out_of_step(ranks: list[RankState]) -> LeftOut | OnceMore | None:
    """A rank that left out a collective, or called one more, so that its later ones met the wrong ones of the others.

    The lines show it: from the first difference on, they are those of the other ranks moved by one.
    """
    for members, called in collectives_of_groups(ranks):
        lines = {r: [op.line for op in called[r]] for r in members}
        by_length = sorted(members, key=lambda o: len(lines[o]))
        for r in members if len(members) > 1 else ():
            other = by_length[-1] if by_length[-1] != r else by_length[-2]
            mine, theirs = lines[r], lines[other]
            at = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
            others = () if at is None else [o for o in members if o != r]
            if at is None or any(lines[o] != theirs[: len(lines[o])] for o in others):
                continue
            longest = called[other]
            if _overlap(mine[at:], theirs[at + 1 :]):
                return LeftOut(r, sorted(others), Numbered.of(longest, at), called[r][at])
            if _overlap(mine[at + 1 :], theirs[at:]):
                return OnceMore(r, sorted(others), Numbered.of(called[r], at), longest[at])
    return None


def _overlap(a, b):
    """Whether two lists have something in common at their beginning, and differ nowhere until the shorter ends."""
    return bool(a and b) and all(x == y for x, y in zip(a, b, strict=False))


class Party(NamedTuple):
    """Ranks that agree, with what the first of them called and the lines where they did."""

    ranks: list[int]
    called: Numbered
    lines: str


class Disagreement(NamedTuple):
    """The ranks of a group did not call the same at ``place`` of their order; the largest party stands first.

    ``about`` is "kind", "root", "size" or "line". ``apart`` are the ranks that differ from a majority, if there is one.
    """

    about: str
    place: int
    parties: list[Party]
    apart: list[int]

    @classmethod
    def between(cls, values: list[list[int]], round: Round, about: str) -> "Disagreement":
        """Between the ranks of ``values``, the largest list last."""
        *few, most = values
        parties = [
            Party(ranks, Numbered.of(round.called[ranks[0]], round.place), lines_of([round.here[r] for r in ranks]))
            for ranks in sorted(values, key=lambda ranks: (-len(ranks), ranks))
        ]
        apart = sorted(r for ranks in few for r in ranks) if len(few[-1]) < len(most) else []
        lacking = round.called[most[0]].lacking
        return cls(about, round.place + lacking, parties, apart)

    def sentence(self, ranks: list[RankState]) -> str:
        said = [f"{names(party.ranks)} called {self._in_words(party.called)}, {party.lines}" for party in self.parties]
        return f"{standing_apart(self.apart)}the ranks disagree on collective #{self.place + 1}: {'; '.join(said)}."

    def _in_words(self, called):
        """A call with what the ranks disagree about."""
        call = called.call
        if self.about == "root":
            return f"{called} with root {call.peer_rank}"
        if self.about == "size":
            data = f", {call.called}" if call.kind == RINGZERO else f" on {call.bytes} bytes of {call.dtype}"
            return f"{called}{data}"
        return str(called)


def disagreement(ranks: list[RankState]) -> "Disagreement | TooLarge | None":
    """Ranks that called different things, which cannot end well."""
    return _collectives_disagree(ranks) or _messages_disagree(ranks)


def _collectives_disagree(ranks):
    """The earliest place where ranks of a group did not call the same collective in the same way."""
    crashed = any(rank.state == "gone" for rank in ranks)
    found = [(min(op.start for op in round.here.values()), cause) for round, cause in _all(ranks, crashed)]
    return min(found, key=lambda each: each[0], default=(0, None))[1]


def _all(ranks: list[RankState], crashed: bool) -> Iterator[tuple[Round, Disagreement]]:
    """Each round whose calls differ in a way that no process group survives."""
    for round in rounds(ranks):
        alike = {(op.kind, op.peer_rank, op.bytes, op.dtype) for op in round.here.values()}
        if len(alike) == 1 and not any(op.parts for op in round.here.values()):
            continue  # as nearly always, so this comes first
        compared: dict[str, Callable[[Operation], object]] = {
            "kind": lambda op: op.kind,
            "root": lambda op: op.peer_rank,
            "size": lambda op: _size(op, crashed),
        }
        for about, value_of in compared.items():
            if len(values := _by_value(round, value_of)) > 1:
                yield round, Disagreement.between(values, round, about)
                break


def _size(op, crashed):
    """What must agree of a call's data; the same for all calls of which nothing must."""
    if op.kind == RINGZERO:
        return wire.tag_of(op)
    compared = op.kind in SAME_SIZE or (crashed and op.kind in OFTEN_SAME_SIZE)
    return (op.bytes, op.dtype) if compared else None


def _by_value(round: Round, value_of: Callable[[Operation], object]) -> list[list[int]]:
    """The ranks in lists that agree on ``value_of(operation)``, the longest list last."""
    values: dict[object, list[int]] = {}
    for r, op in round.here.items():
        values.setdefault(value_of(op), []).append(r)
    return sorted(values.values(), key=len)


def lines_disagree(ranks: list[RankState]) -> Disagreement | None:
    """Ranks that wait in one of ringzero's own collectives and called it at different lines.

    Its messages do not say which collective was called, so where all ranks came and none gets out the lines decide.
    """
    stuck = [rank.stuck_call for rank in ranks if rank.stuck_call and rank.stuck_call.kind == RINGZERO]
    for round in rounds(ranks) if stuck else ():
        values, calls = _by_value(round, lambda op: op.line), round.here.values()
        if len(calls) == len(round.members) and len(values) > 1 and any(op is call for op in calls for call in stuck):
            return Disagreement.between(values, round, "line")
    return None


class TooLarge(NamedTuple):
    """A message is larger than the room its receiver made for it. gloo then ends the receiver's process."""

    sent: Operation
    received: Operation

    def sentence(self, ranks: list[RankState]) -> str:
        sent, received = self
        return (
            f"rank {sent.rank} sent {sent.bytes} bytes to rank {received.rank}, {sent.line}; rank {received.rank} made "
            f"room for {received.bytes}, {received.line}."
        )


def _messages_disagree(ranks):
    """A message larger than the room for it. A smaller one passes."""
    for sends, receives in pairs(rank.communication for rank in ranks).values():
        for sent, received in zip(sends, receives, strict=False):
            if sent.bytes > received.bytes:
                return TooLarge(sent, received)
    return None
