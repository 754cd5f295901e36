"""Ranks that did not call the same things. The first difference in a group is the fault; what follows is its echo."""

from collections.abc import Callable
from functools import partial

from ringzero.explain.causes import Disagreement, GroupOfSome, LeftOut, OnceMore, Party, TooLarge, lines_of, numbered
from ringzero.explain.state import RankState, Round, collectives_of_groups, rounds
from ringzero.record import wire
from ringzero.record.operation import RINGZERO, Operation, pairs

SAME_SIZE = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter")  # bytes must agree on all ranks
OFTEN_SAME_SIZE = ("gather", "all_to_all")  # where they do not and a rank crashed, that is why


def group_of_some(ranks: list[RankState]) -> GroupOfSome | None:
    """new_group that only some ranks called. It is not recorded: the stacks show who waits in it."""
    inside = [r for r, rank in enumerate(ranks) if not rank.stuck_in and "new_group" in rank.functions]
    outside = [r for r in range(len(ranks)) if r not in inside]
    return GroupOfSome(inside, outside) if inside and outside else None


def out_of_step(ranks: list[RankState]) -> LeftOut | OnceMore | None:
    """A rank that left out a collective, or called one more, so that its later ones met the wrong ones of the others.

    The lines show it: from the first difference on, they are those of the other ranks moved by one.
    """
    for members, called in collectives_of_groups(ranks):
        lines = {r: [op.line for op in called[r]] for r in members}
        for r in members:
            others = sorted(set(members) - {r}, key=lambda o: len(lines[o]))
            mine, theirs = lines[r], lines[others[-1]] if others else []
            at = next((i for i, (a, b) in enumerate(zip(mine, theirs, strict=False)) if a != b), None)
            if at is None or any(lines[o] != theirs[: len(lines[o])] for o in others):
                continue
            longest = called[others[-1]]
            if _overlap(mine[at:], theirs[at + 1 :]):
                return LeftOut(r, sorted(others), numbered(longest, at), called[r][at])
            if _overlap(mine[at + 1 :], theirs[at:]):
                return OnceMore(r, sorted(others), numbered(called[r], at), longest[at])
    return None


def _overlap(a, b):
    """Whether two lists have something in common at their beginning, and differ nowhere until the shorter ends."""
    return bool(a and b) and all(x == y for x, y in zip(a, b, strict=False))


def disagreement(ranks: list[RankState]) -> Disagreement | TooLarge | None:
    """Ranks that called different things, which cannot end well."""
    return _collectives_disagree(ranks) or _messages_disagree(ranks)


def _collectives_disagree(ranks):
    """The earliest place where ranks of a group did not call the same collective in the same way."""
    crashed = any(rank.state == "gone" for rank in ranks)
    found = [(round, _disagreement(round, crashed)) for round in rounds(ranks)]
    found = [(min(op.start for op in round.here.values()), cause) for round, cause in found if cause]
    return min(found, key=lambda each: each[0], default=(0, None))[1]


def _disagreement(round, crashed):
    alike = {(op.kind, op.peer_rank, op.bytes, op.dtype) for op in round.here.values()}
    if len(alike) == 1 and not any(op.parts for op in round.here.values()):
        return None  # as nearly always, so this comes first
    for about, of in (("kind", _kind), ("root", _root), ("size", partial(_size, crashed=crashed))):
        values = _by_value(round, of)
        if len(values) > 1:
            return _between(values, round, about)
    return None


def lines_disagree(ranks: list[RankState]) -> Disagreement | None:
    """Ranks that wait in one of ringzero's own collectives and called it at different lines.

    Its messages do not say which collective was called, so where all ranks came and none gets out the lines decide.
    """
    stuck = [rank.stuck_call for rank in ranks if rank.stuck_call and rank.stuck_call.kind == RINGZERO]
    for round in rounds(ranks) if stuck else ():
        values, calls = _by_value(round, _line), round.here.values()
        if len(calls) == len(round.members) and len(values) > 1 and any(op is call for op in calls for call in stuck):
            return _between(values, round, "line")
    return None


def _kind(op):
    return op.kind


def _root(op):
    return op.peer_rank


def _line(op):
    return op.line


def _size(op, crashed):
    if op.kind == RINGZERO:
        return wire.tag_of(op)
    compared = op.kind in SAME_SIZE or (crashed and op.kind in OFTEN_SAME_SIZE)
    return (op.bytes, op.dtype) if compared else None


def _by_value(round: Round, of: Callable[[Operation], object]) -> list[list[int]]:
    """The ranks in groups that agree on ``of(operation)``, the largest group last."""
    values: dict[object, list[int]] = {}
    for r, op in round.here.items():
        values.setdefault(of(op), []).append(r)
    return sorted(values.values(), key=len)


def _between(values, round, about):
    *few, most = values
    parties = [
        Party(group, numbered(round.called[group[0]], round.place), lines_of([round.here[r] for r in group]))
        for group in sorted(values, key=lambda group: (-len(group), group))
    ]
    apart = sorted(r for group in few for r in group) if len(few[-1]) < len(most) else []
    return Disagreement(about, round.place, parties, apart)


def _messages_disagree(ranks):
    """A message larger than the room for it, which gloo does not survive. A smaller one passes."""
    for (src, dst, *_), (sends, receives) in pairs(rank.communication for rank in ranks).items():
        for sent, received in zip(sends, receives, strict=False):
            if sent.bytes > received.bytes:
                return TooLarge(src, sent, dst, received)
    return None
