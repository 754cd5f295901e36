"""Writes down what this process does, while it does it."""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterator
from os import PathLike
from typing import Any, NamedTuple

from ringzero.record import sources, trace_file
from ringzero.record.operation import COMPUTE, MESSAGES, Operation

_recorder: "Recorder | None" = None  # of this process


class Origin(NamedTuple):
    """What the messages of one collective have in common; each field is the number of a name, but for ``call``."""

    group: int
    location: int
    call: int = 0
    called: int = 0


class Recorder:
    """Writes one rank's operations to ``path`` (see ``trace_file``)."""

    def __init__(self, path: str | PathLike, rank: int, of_a_script: bool = False):
        capacity = trace_file.OF_A_SCRIPT if of_a_script else trace_file.CAPACITY
        self._file, self._path, self._rank = trace_file.Writer(path, capacity), path, rank
        self._lock = threading.Lock()
        self._counts: dict[tuple, int] | None = {} if of_a_script else None  # the last place in each channel
        self.may_lose = False  # whether the program goes on when other ranks are lost
        self._numbers: dict[str, dict] = {"group": {}, "line": {}, "dtype": {}, "called": {}}
        self._calls = itertools.count(1)
        self._batches, self._mine = itertools.count(), threading.local()  # .batch: that of this thread, if in one
        self._threads: dict[int, int] = {}
        self._thread_numbers = itertools.count()
        self.notes_heads = False  # see ``noting_heads``

    def operation(
        self, kind: str, peer: int | None, size: int, dtype: object, group: object, tag: int, describe: Callable
    ) -> int | None:
        """Write one record; its offset in the file, or None when the file is full.

        ``describe(group)`` gives a group's name and its ranks; it is called once for each group.
        """
        with self._lock:  # a program may communicate from several threads
            origin = Origin(self._number("group", group, describe), self._location())
            return self._write(kind, peer, size, dtype, tag, origin)

    def call(self, called: str, group: object, describe: Callable) -> Origin:
        """Begin a collective that is made of messages, ``called`` in words; the Origin of its messages."""
        with self._lock:
            name = self._number("called", called, _itself)
            return Origin(self._number("group", group, describe), self._location(), next(self._calls), name)

    def message(self, kind: str, peer: int, size: int, dtype: object, tag: int, origin: Origin) -> int | None:
        """As ``operation``, for a message of a ``call``: its Origin is known, which saves the search for its line."""
        with self._lock:
            return self._write(kind, peer, size, dtype, tag, origin)

    def compute(self, name: str) -> int | None:
        """Write that this thread begins to compute ``name``; the record's offset as in ``operation``."""
        with self._lock:
            origin = Origin(0, self._location(), 0, self._number("called", name, _itself))
            offset = self._write(COMPUTE, None, 0, None, 0, origin)
            if offset is not None:
                self._file.computed_by(offset, self._thread())
            return offset

    def _write(self, kind, peer, size, dtype, tag, origin):
        dtype, batch = self._number("dtype", dtype, _type_name), getattr(self._mine, "batch", None)
        place = 0 if self._counts is None else self._place(self._counts, kind, peer, tag, origin)
        return self._file.append(kind, dtype, peer, size, tag, origin, batch, place)

    def _place(self, counts, kind, peer, tag, origin):
        """How many operations of the same channel there were before; now and then all counts go into the file."""
        if kind == COMPUTE:
            return 0
        channel = (origin.group, kind, peer, tag) if kind in MESSAGES else (origin.group, "", None, 0)
        place = counts[channel] = counts.get(channel, -1) + 1
        if self._file.count % trace_file.LAST == trace_file.LAST - 1:
            for number, (each, last) in enumerate(counts.items()):
                self._file.name("count", number, [*each, last + 1])
            self._file.forget(before=self._file.count - trace_file.LAST)
        return place

    def _number(self, what, thing, describe):
        """The number of a ``thing``, and its name into the file of names when it comes for the first time."""
        numbers = self._numbers[what]
        if thing not in numbers:
            numbers[thing] = len(numbers)
            self._file.name(what, numbers[thing], describe(thing))
        return numbers[thing]

    def _thread(self):
        """Which thread this is, in the order in which they first waited or computed."""
        identity = threading.get_ident()
        if identity not in self._threads:
            self._threads[identity] = min(next(self._thread_numbers), trace_file.MOST_THREADS)
        return self._threads[identity]

    def begin_batch(self) -> None:
        """Messages that this thread begins from now on are one batch."""
        self._mine.batch = next(self._batches)

    def end_batch(self) -> None:
        """End the batch of this thread."""
        self._mine.batch = None

    def note_head(self, offset: int | None, tensor: Any) -> None:
        """Within ``noting_heads``: keep the first element of ``tensor``, the message recorded at ``offset``."""
        if self.notes_heads and offset is not None and tensor.numel():
            self._file.head(offset, tensor.flatten()[0].item())

    @property
    def count(self) -> int:
        """How many operations there were so far."""
        return self._file.count

    def records(self) -> list[Operation]:
        """What was written so far."""
        return trace_file.read(self._path, self._rank)

    def close(self) -> None:
        """Close the files. A rank never does: they outlive it."""
        self._file.close()

    def waited(self, offsets: Collection[int | None], wait: Callable, *args: Any, from_its_start: bool = False) -> Any:
        """``wait(*args)``, which waits for the operations recorded at ``offsets``, noted before and after it.

        ``from_its_start``: as if it had waited since the operations began.
        """
        for offset in offsets:
            self.begins_to_wait(offset, from_its_start)
        try:
            result = wait(*args)
        except Exception:
            for offset in offsets:
                self.has_failed(offset)
            raise
        for offset in offsets:
            self.has_ended(offset)
        return result

    def begins_to_wait(self, offset: int | None, from_its_start: bool = False) -> None:
        """Note that this thread now waits for the operation recorded at ``offset``, or has ``from_its_start``."""
        if offset is not None:
            when = self._file.start_of(offset) if from_its_start else time.time()
            self._file.wait(offset, when, self._thread(), now=True)

    def was_waited_for(self, offset: int | None) -> None:
        """Note that the program waited for the operation recorded at ``offset``, without being held up."""
        if offset is not None:
            self._file.wait(offset, time.time(), self._thread(), now=False)

    def was_not_waited_for(self, offset: int) -> None:
        """Take back what was noted of waiting for the operation recorded at ``offset``."""
        self._file.not_waited_for(offset, dropped=False)

    def was_dropped(self, offset: int) -> None:
        """Note that the handle of the operation recorded at ``offset`` is gone, and nobody has waited for it."""
        with contextlib.suppress(*trace_file.CLOSED):
            self._file.not_waited_for(offset, dropped=True)

    def given_to_torch(self, offset: int) -> None:
        """Note that torch's own code has the future of the operation recorded at ``offset``."""
        self._file.given_to_torch(offset)

    def has_ended(self, offset: int | None) -> None:
        """Note that the operation recorded at ``offset`` is over: it was waited for, or computed."""
        if offset is not None:
            self._file.end(offset)

    def has_failed(self, offset: int | None) -> None:
        """The operation ended with an error: the other end is gone.

        Where ranks may be lost, the program may go on. Elsewhere the call is being ended: ranks that are killed one
        after another close connections, and what their neighbours waited for is still why the call hung.
        """
        if self.may_lose:
            self.has_ended(offset)

    def _location(self):
        """The number of the caller's line."""
        return self._number("line", sources.callers_line(), _place)


def start(path: str | PathLike, rank: int, of_a_script: bool = False) -> Recorder:
    """From now on this process, ``rank``, records into ``path``; ``of_a_script``: which may run for days."""
    global _recorder
    _recorder = Recorder(path, rank, of_a_script)
    return _recorder


def stop() -> None:
    """This process records no more, and closes its files, if it did."""
    global _recorder
    if _recorder is not None:
        _recorder.close()
        _recorder = None


def of_this_process() -> "Recorder | None":
    """What writes this process's records; None unless it records."""
    return _recorder


def count() -> int:
    """How many operations this process has recorded; reading them takes time."""
    return _recorder.count if _recorder else 0


def recorded() -> list[Operation]:
    """This process's operations so far, computing and communication; none unless it records."""
    return _recorder.records() if _recorder else []


@contextlib.contextmanager
def computing(name: str) -> Iterator[None]:
    """Record what runs inside as computing ``name``: a bar of a timeline. It also decorates functions.

        with computing("backward"):
            loss.backward()

    Nothing happens in a process that does not record. On a GPU the times are those of the CPU, which starts kernels and
    does not wait for them; synchronise inside where the bar should be as long as the kernels run.
    """
    recorder = _recorder
    offset = recorder.compute(name) if recorder else None
    try:
        yield
    finally:
        if recorder:
            recorder.has_ended(offset)


@contextlib.contextmanager
def batch() -> Iterator[None]:
    """Messages that this thread begins inside are one batch."""
    recorder = _recorder
    if recorder:
        recorder.begin_batch()
    try:
        yield
    finally:
        if recorder:
            recorder.end_batch()


@contextlib.contextmanager
def noting_heads() -> Iterator[None]:
    """Of each message that this process sends inside, keep the first element: ``Operation.head``.

    Reading an element takes longer than recording a message; on a GPU it waits for all kernels before.
    """
    recorder = _recorder
    if recorder:
        recorder.notes_heads = True
    try:
        yield
    finally:
        if recorder:
            recorder.notes_heads = False


def _itself(name):
    return (name,)


def _place(line):
    return (sources.place(*line),)


def _type_name(dtype):
    return (None if dtype is None else str(dtype).removeprefix("torch."),)
