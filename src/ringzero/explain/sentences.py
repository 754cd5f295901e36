"""How to say why ranks hang: a sentence for each cause, which names ranks and lines."""

from functools import singledispatch

from ringzero.explain.causes import (
    Alone,
    BehindOthers,
    Cause,
    Cycle,
    Disagreement,
    GroupOfSome,
    LeftOut,
    MessageMissing,
    NeverEntered,
    NeverWaited,
    NotCommunicating,
    NotExchanged,
    Numbered,
    OnceMore,
    TooLarge,
)
from ringzero.explain.state import RankState
from ringzero.record.operation import RINGZERO, Operation

SHOWN = 8  # ranks of which a sentence says what they do


@singledispatch
def sentence(cause: Cause, ranks: list[RankState]) -> str:
    """``cause`` in words; ``ranks`` say what each rank is doing instead."""
    raise TypeError(f"{cause!r} is no cause that has a sentence; register one")


@sentence.register
def _(cause: GroupOfSome, ranks: list[RankState]) -> str:
    return (
        f"{_names(cause.inside)} {_verb(cause.inside, 'waits', 'wait')} in new_group, {ranks[cause.inside[0]].where}; "
        f"{_absent(ranks, cause.outside)}. Every rank must call new_group, also those that the group leaves out."
    )


@sentence.register
def _(cause: LeftOut, ranks: list[RankState]) -> str:
    rank, missed = cause.rank, cause.missed
    return (
        f"rank {rank} left out {_number(missed)}; {_names(cause.others)} called it, {missed.call.line}; rank {rank} "
        f"called the next one in its place, {cause.instead.line}."
    )


@sentence.register
def _(cause: OnceMore, ranks: list[RankState]) -> str:
    extra, others = cause.extra, _names(cause.others)
    return (
        f"rank {cause.rank} called {_number(extra)}, {extra.call.line}, once more than {others}; {others} called the "
        f"next one in its place, {cause.instead.line}."
    )


@sentence.register
def _(cause: Disagreement, ranks: list[RankState]) -> str:
    said = [
        f"{_names(party.ranks)} called {_described(party.called, cause.about)}, {' and '.join(party.lines)}"
        for party in cause.parties
    ]
    return f"{_apart(cause.apart)}the ranks disagree on collective #{cause.place + 1}: {'; '.join(said)}."


@sentence.register
def _(cause: TooLarge, ranks: list[RankState]) -> str:
    sent, received = cause.sent, cause.received
    return (
        f"rank {cause.src} sent {sent.bytes} bytes to rank {cause.dst}, {sent.line}; rank {cause.dst} made room for "
        f"{received.bytes}, {received.line}."
    )


@sentence.register
def _(cause: NeverWaited, ranks: list[RankState]) -> str:
    posted, answer = cause.posted, cause.answer
    begin = f"rank {cause.rank} posted a {posted.kind}, {posted.line}, and"
    if cause.returned:
        how = "returned without waiting for it, which cancels it"
        return f"{begin} {how}; rank {cause.other} {_doing(answer)}, {answer.line}."
    how = "never waited for it: dropping its handle cancels it"
    return f"{begin} {how}; rank {cause.other} posted the other end, {answer.line}."


@sentence.register
def _(cause: MessageMissing, ranks: list[RankState]) -> str:
    return f"{_apart(cause.apart)}{_exchanged(cause.missing)}; {_absent(ranks, cause.absent)}."


@sentence.register
def _(cause: NeverEntered, ranks: list[RankState]) -> str:
    there = f"{_names(cause.there)} {_verb(cause.there, 'waits', 'wait')} there, {' and '.join(cause.lines)}"
    call = cause.entered.call
    which = f", {call.called}" if call.kind == RINGZERO else ""
    return (
        f"{_apart(cause.apart)}{_names(cause.missing)} never entered {_number(cause.entered)}{which}; {there}; "
        f"{_absent(ranks, cause.missing)}."
    )


@sentence.register
def _(cause: Alone, ranks: list[RankState]) -> str:
    rank, call = cause.missing.rank, cause.missing.waits_in
    but = f"{_exchanged(cause.missing)}; {_absent(ranks, cause.others)}"
    return f"rank {rank} {_doing(call)}, {call.line}, but {but}."


@sentence.register
def _(cause: Cycle, ranks: list[RankState]) -> str:
    advice = ""
    if cause.astray is not None:
        other, op = cause.cycle[0], cause.astray
        advice = f" Rank {op.rank} has posted a receive, from rank {op.peer_rank} and not from rank {other}, {op.line}."
    elif cause.all_send:
        advice = " Start the send and the receive of a round together, with dist.batch_isend_irecv."
    return f"a cycle: {_absent(ranks, [*cause.cycle, *cause.others], cause.waits)}.{advice}"


@sentence.register
def _(cause: BehindOthers, ranks: list[RankState]) -> str:
    waits = [
        f"rank {op.rank} {_doing(op)}, {op.line}, which rank {end.rank} has behind its {_with_peer(head)}, {head.line}"
        for op, end, head in cause.waits[:SHOWN]
    ]
    advice = ""
    if all(op.is_message for op, *_ in cause.waits):
        advice = " Put messages that must go at once into one dist.batch_isend_irecv."
    return (
        "gloo forgives this, NCCL does not: there a rank's operations run one after another, in the order of the "
        f"calls. {'; '.join(waits)}.{advice}"
    )


@sentence.register
def _(cause: NotCommunicating, ranks: list[RankState]) -> str:
    busy = cause.ranks
    return f"{_names(busy)} {_verb(busy, 'is', 'are')} in no communication and not done: {_absent(ranks, busy)}."


def last_call(rank: RankState) -> str:
    """What the rank did last, as the end of a clause."""
    return f", last in {rank.calls[-1].kind}, {rank.calls[-1].line}" if rank.calls else ""


def _number(numbered: Numbered) -> str:
    """ "all_reduce #3": the third all_reduce of the group."""
    return f"{numbered.call.kind} #{numbered.number}"


def _described(numbered, about):
    """A call with what the ranks disagree ``about``."""
    call, text = numbered.call, _number(numbered)
    if about == "root":
        return f"{text} with root {call.peer_rank}"
    if about == "size" and call.kind == RINGZERO:
        return f"{text}, {call.called}"
    if about == "size":
        return f"{text} on {call.bytes} bytes of {call.dtype}"
    return text


def _doing(call: Operation) -> str:
    if not call.is_message:
        return f"waits in {call.kind}"
    if call.peer_rank is None:
        return "waits to receive from any rank"
    return f"waits to {'send to' if call.kind == 'send' else 'receive from'} rank {call.peer_rank}"


def _with_peer(call: Operation) -> str:
    if not call.is_message:
        return call.kind
    return f"{call.kind} {'to' if call.kind == 'send' else 'from'} rank {call.peer_rank}"


def _exchanged(missing: NotExchanged) -> str:
    did = "sent" if missing.waits_in.kind == "recv" else "received from"
    so_far = f"only {missing.messages} message{'s' * (missing.messages != 1)}" if missing.messages else "nothing"
    return f"{_names(missing.peers) if len(missing.peers) == 1 else 'all ranks'} {did} rank {missing.rank} {so_far}"


def _absent(ranks, which, waits=None):
    """What ranks that did not come are doing instead; with ``waits``, also for whom they wait."""
    parts = []
    for r in which[:SHOWN]:
        rank, call = ranks[r], ranks[r].stuck_call
        if rank.state in ("returned", "gone"):
            parts.append(f"rank {r} had {'returned' if rank.state == 'returned' else 'ended'}{last_call(rank)}")
        elif call is None:
            parts.append(f"rank {r} is at {rank.where}")
        else:
            whom = f" for {_names(sorted(waits[r]))}" if waits and waits[r] and not call.is_message else ""
            parts.append(f"rank {r} {_doing(call)}{whom}, {call.line}")
    return "; ".join(parts) + (" …" if len(which) > SHOWN else "")


def _apart(ranks):
    return f"{_names(ranks)} {_verb(ranks, 'stands', 'stand')} apart: " if ranks else ""


def _names(ranks):
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


def _verb(ranks, one, many):
    return one if len(ranks) == 1 else many
