"""One operation of a rank: something it computed or communicated, recorded while it ran or predicted beforehand."""

from collections.abc import Iterable
from typing import NamedTuple

COMMUNICATION, COMPUTE = "communication", "compute"  # streams
MESSAGES = ("send", "recv")
HEADER = "header"  # a small message that precedes the first call of a kind; see ``ringzero.record.wire``
RINGZERO = "ringzero collective"  # the kind of a call whose messages ``calls`` put together


class Operation(NamedTuple):
    """What one rank did once. Times are seconds (``time.time``), and None for what never happened.

    ``kind``     "send", "recv", "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter",
                 "reduce_scatter", "all_to_all", "barrier"; "header" for the small messages in which ringzero's
                 own collectives compare what ranks call, before the first call of a kind; for computing any name,
                 such as "backward"
    ``rank``     who did it
    ``start``    the call; ``wait``, when its completion was first waited for; ``end``, when that returned. What
                 computes is not waited for: it lasts from ``start`` to ``end``
    ``stream``   "communication" or "compute"
    ``bytes``    size of the tensors this rank passed in
    ``dtype``    their type, such as "float32"
    ``peer``     the other rank of a send or recv, the root of a rooted collective, else None; a rank of ``group``
    ``group``    the name of the process group; ``members``, its ranks (empty: those of the default group)
    ``tag``      of a send or recv
    ``line``     where in the caller's code, such as "cell 7 line 4"
    ``call``     of a message of ringzero's own collectives: which call of this rank it is part of (1, 2, …), else None
    ``called``   what was called then, such as "all_reduce(op=\\"sum\\") of 4 elements of torch.float32", else None
    ``sequence`` 0, 1, 2, … in the order this rank began them
    ``batch``    which ``batch_isend_irecv`` of the rank it was part of (0, 1, …), or None
    ``thread``   which of the rank's threads computed or waited (0, 1, … in the order they first did)
    ``head``     the first element of a message sent, where that was asked for (``noting_heads``), else None
    ``dropped``  whether its handle is gone without a wait, which cancels a message that is not through yet
    ``given``    whether torch's own code has its future, so that no record shows who waits
    ``missing``  how many operations this rank did after this one, its last in the trace: there was no room for them
    ``parts``    the messages that one of ringzero's own collectives is made of, where ``calls`` put them together

    A prediction names what it predicts; its times count from any moment, such as 0.0 for the start of the step:

    >>> forward = Operation("forward", rank=0, start=0.0, end=0.1, stream=COMPUTE)
    >>> forward.last - forward.start
    0.1
    """

    kind: str
    rank: int
    start: float
    wait: float | None = None
    end: float | None = None
    stream: str = COMMUNICATION
    bytes: int = 0
    dtype: str | None = None
    peer: int | None = None
    group: str = ""
    members: tuple[int, ...] = ()
    tag: int = 0
    line: str = ""
    call: int | None = None
    called: str | None = None
    sequence: int = 0
    batch: int | None = None
    thread: int = 0
    head: float | None = None
    dropped: bool = False
    given: bool = False
    parts: tuple["Operation", ...] = ()
    missing: int = 0

    @property
    def peer_rank(self) -> int | None:
        """``peer`` as a rank of the default group."""
        return self.members[self.peer] if self.peer is not None and self.members else self.peer

    @property
    def last(self) -> float:
        """The latest time known of it."""
        return next(time for time in (self.end, self.wait, self.start) if time is not None)

    @property
    def is_message(self) -> bool:
        """Whether it is a send or a receive; headers are neither."""
        return self.kind in MESSAGES


def calls(operations: Iterable[Operation]) -> list[Operation]:
    """One rank's operations as its caller made them: one, with its ``parts``, for all messages of a ringzero call."""
    parts: dict[tuple[str, int], list[Operation]] = {}
    for index, op in enumerate(operations):
        parts.setdefault(("operation", index) if op.call is None else ("call", op.call), []).append(op)
    return [
        some[0] if some[0].call is None else some[0]._replace(kind=RINGZERO, peer=None, parts=tuple(some))
        for some in parts.values()
    ]


def pairs(ranks: Iterable[Iterable[Operation]]) -> dict[tuple, tuple[list[Operation], list[Operation]]]:
    """Messages by channel: ``{(src, dst, group, tag): (sends, receives)}``, each in the order they were posted.

    ``ranks`` are the operations of each rank. The k-th send of a channel meets its k-th receive. Receives from any rank
    are left out.
    """
    channels: dict[tuple, tuple[list[Operation], list[Operation]]] = {}
    for operations in ranks:
        for op in operations:
            if op.is_message and op.peer is not None:
                ends = (op.rank, op.peer_rank) if op.kind == "send" else (op.peer_rank, op.rank)
                channels.setdefault((*ends, op.group, op.tag), ([], []))[op.kind == "recv"].append(op)
    return channels


def bytes_sent(operations: Iterable[Operation]) -> int:
    """Bytes of all messages that were sent, headers left out. Raises ValueError where the trace is cut."""
    operations = list(operations)
    if said := what_is_missing(operations):
        raise ValueError(f"{said}; a sum of bytes would be wrong: record fewer steps in one call")
    return sum(op.bytes for op in operations if op.kind == "send")


def what_is_missing(operations: Iterable[Operation]) -> str:
    """In words, which ranks did more than the trace holds; empty if it is whole."""
    cut = [f"{op.missing} later ones of rank {op.rank}" for op in operations if op.missing]
    return f"the trace is cut: it has no room for {', '.join(cut)}" if cut else ""
