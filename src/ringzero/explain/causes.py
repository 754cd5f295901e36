"""What can be the case when ranks hang or fail: one class for each cause, which holds the facts and no words.

``disagreements`` and ``waits`` find them, ``sentences`` says them.
"""

from typing import NamedTuple

from ringzero.record.operation import Operation


class Numbered(NamedTuple):
    """A call, and how many calls of its kind its rank had made in that group, this one included."""

    call: Operation
    number: int


class GroupOfSome(NamedTuple):
    """Ranks ``inside`` wait in new_group, which ranks ``outside`` have not called."""

    inside: list[int]
    outside: list[int]


class LeftOut(NamedTuple):
    """``rank`` left out a collective that all ``others`` called; it called ``instead``, the one after."""

    rank: int
    others: list[int]
    missed: Numbered
    instead: Operation


class OnceMore(NamedTuple):
    """``rank`` called a collective once more than all ``others``; they called ``instead``, the one after."""

    rank: int
    others: list[int]
    extra: Numbered
    instead: Operation


class Party(NamedTuple):
    """Ranks that agree, with what the first of them called and the lines where they did."""

    ranks: list[int]
    called: Numbered
    lines: list[str]


class Disagreement(NamedTuple):
    """The ranks of a group did not call the same at ``place`` of their order; the largest party stands first.

    ``about`` is "kind", "root", "size" or "line". ``apart`` are the ranks that differ from a majority, if there is one.
    """

    about: str
    place: int
    parties: list[Party]
    apart: list[int]


class TooLarge(NamedTuple):
    """A message is larger than the room its receiver made for it. gloo then ends the receiver's process."""

    src: int
    sent: Operation
    dst: int
    received: Operation


class NeverWaited(NamedTuple):
    """``rank`` posted a message and did not wait for it, which cancels it; ``answer`` is the other end.

    Either the rank ``returned``, or it may have dropped the handle.
    """

    rank: int
    posted: Operation
    other: int
    answer: Operation
    returned: bool


class NotExchanged(NamedTuple):
    """``rank`` waits for a message of ``peers``, which have exchanged so many ``messages`` with it."""

    rank: int
    waits_in: Operation
    peers: list[int]
    messages: int


class MessageMissing(NamedTuple):
    """A message lacks its other end; ``absent`` are ranks that wait for one or should have posted one.

    ``apart`` are the ranks to blame where all others have returned, so that nobody can come any more.
    """

    missing: NotExchanged
    absent: list[int]
    apart: list[int]


class NeverEntered(NamedTuple):
    """Ranks ``missing`` did not come to a collective in which ranks ``there`` wait; ``apart`` as above."""

    missing: list[int]
    there: list[int]
    entered: Numbered
    lines: list[str]
    apart: list[int]


class Alone(NamedTuple):
    """A rank waits for a message, and ``others``, from which it could come, have returned."""

    missing: NotExchanged
    others: list[int]


class Cycle(NamedTuple):
    """Each rank of ``cycle`` waits for the next one and the last for the first; ``others`` wait for the first too.

    ``waits`` says for whom each rank waits. ``astray`` is a receive that the rank for whom the first one waits has
    posted from another rank; with ``all_send`` and none of these, nobody of the cycle receives yet.
    """

    cycle: list[int]
    others: list[int]
    waits: dict[int, set[int]]
    all_send: bool
    astray: Operation | None = None


class BehindOthers(NamedTuple):
    """Operations that have all their ends, which yet never run at once, because ranks have them in queues.

    ``waits`` are ``(operation that runs, its other end, what that other rank runs instead)``.
    """

    waits: list[tuple[Operation, Operation, Operation]]


class NotCommunicating(NamedTuple):
    """These ranks wait for no message, and have not returned."""

    ranks: list[int]


Cause = (
    BehindOthers
    | GroupOfSome | LeftOut | OnceMore | Disagreement | TooLarge | NeverWaited | MessageMissing | NeverEntered | Alone
    | Cycle | NotCommunicating
)  # fmt: skip


def numbered(calls: list[Operation], index: int) -> Numbered:
    """Call ``index`` of ``calls``, one rank's collectives in a group."""
    return Numbered(calls[index], sum(1 for call in calls[: index + 1] if call.kind == calls[index].kind))


def lines_of(calls: list[Operation]) -> list[str]:
    """The lines of ``calls``, each once, in their order."""
    return list(dict.fromkeys(call.line for call in calls))
