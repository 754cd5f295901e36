"""What one rank did, read from a trace."""

from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from ringzero.record.operation import COMMUNICATION, COMPUTE, HEADER, RINGZERO, Operation, calls
from ringzero.record.spans import Spans, union, without

# Nobody leaves one of these before everybody has entered it: each rank's result needs the data of all others.
SYNCHRONISING = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")


class Profile(NamedTuple):
    """One rank's trace. Times are seconds of its own clock, all counted from one moment.

    ``operations``  what it communicated and computed, in order of start
    ``computing``   when any of its threads or streams computed
    ``meetings``    by a name that all ranks concerned give it, the operation that was this rank's part in a collective
                    or a message
    ``steps``       of each ``ProfilerStep#``, when it began and ended; empty where nobody called ``profile.step()``
    ``waiting``     when the rank stood still for communication, where the trace knows that
    ``world_size``  of the job, where the trace knows that; ``host``, the machine
    ``notes``       what is odd about the trace, in sentences
    """

    rank: int
    file: str
    operations: list[Operation]
    computing: Spans
    meetings: dict[Hashable, Operation]
    steps: dict[int, tuple[float, float]]
    waiting: Spans | None = None
    world_size: int | None = None
    host: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def communication(self) -> list[Operation]:
        """Its operations that communicate."""
        return [op for op in self.operations if op.stream == COMMUNICATION]

    @property
    def span(self) -> tuple[float, float]:
        """From its first operation's start to the end of the last, steps included."""
        begins = [op.start for op in self.operations] + [begin for begin, _ in self.steps.values()]
        return min(begins), max([op.last for op in self.operations] + [end for _, end in self.steps.values()])

    def on_clock(self, offset: float, drift: float = 0.0, at: float = 0.0) -> "Profile":
        """The same on a clock that is behind this one by ``offset`` when this one says ``at``, and drifts from it."""

        def moved(time):
            return None if time is None else time - offset - drift * (time - at)

        def spans(some):
            return [(moved(begin), moved(end)) for begin, end in some]

        on_it = {id(op): op._replace(start=moved(op.start), wait=moved(op.wait), end=moved(op.end)) for op in self._all}
        return self._replace(
            operations=[on_it[id(op)] for op in self.operations],
            computing=spans(self.computing),
            meetings={name: on_it[id(op)] for name, op in self.meetings.items()},
            steps={number: (moved(begin), moved(end)) for number, (begin, end) in self.steps.items()},
            waiting=None if self.waiting is None else spans(self.waiting),
        )

    @property
    def _all(self):
        return [*self.operations, *self.meetings.values()]


def of_operations(operations: Iterable[Operation], file: str = "the record") -> list[Profile]:
    """A ``Profile`` for each rank of what this package recorded, such as ``Ranks.trace``. No step has a name there."""
    operations = [op for op in operations if op.kind != HEADER]
    ranks = sorted({op.rank for op in operations})
    return [_of_rank(rank, [op for op in operations if op.rank == rank], file) for rank in ranks]


def _of_rank(rank: int, operations: list[Operation], file: str) -> Profile:
    waits = [(op.wait, op.last, op.thread) for op in operations if op.wait is not None and op.stream == COMMUNICATION]
    of_threads = {op.thread for op in operations if op.stream == COMPUTE}
    computing = [
        piece
        for thread in of_threads
        for piece in without(
            union((op.start, op.last) for op in operations if op.stream == COMPUTE and op.thread == thread),
            union((begin, end) for begin, end, waits_in in waits if waits_in == thread),
        )
    ]
    whole = sorted((_as_called(op) for op in calls(operations)), key=lambda op: op.start)
    waiting = union((begin, end) for begin, end, thread in waits if not of_threads or thread in of_threads)
    return Profile(rank, file, whole, union(computing), dict(_named(whole)), {}, waiting=waiting)


def _as_called(op: Operation) -> Operation:
    """One operation for all messages of a call of ringzero's own collectives, named as the call was."""
    if op.kind != RINGZERO:
        return op
    waits = [part.wait for part in op.parts if part.wait is not None]
    ends = [part.last for part in op.parts]
    return op._replace(
        kind=(op.called or RINGZERO).split("(")[0],
        wait=min(waits, default=None),
        end=max(ends),
        bytes=max(part.bytes for part in op.parts),
    )


def _named(operations: Iterable[Operation]) -> Iterator[tuple[Hashable, Operation]]:
    """``(name, operation)`` of what communicates: the n-th of its kind in its group, or of its channel."""
    seen: dict[Hashable, int] = {}
    for op in operations:
        if op.stream != COMMUNICATION:
            continue
        name = channel(op) if op.is_message else (op.group, op.members, op.kind)
        if name is not None:
            seen[name] = seen.get(name, 0) + 1
            yield (name, seen[name]), op


def channel(op: Operation) -> Hashable:
    """What a send and the receive that takes it have in common, or None where the trace has no peer."""
    if op.peer is None:
        return None
    ends = (op.rank, op.peer_rank) if op.kind == "send" else (op.peer_rank, op.rank)
    return ("message", *ends, op.group, op.tag)
