"""Records of what a rank did, in a file that another process can read while the rank hangs and after it crashed.

The file is memory-mapped: writing a record costs a few microseconds and no system call. A record read back is an
``Operation``.
"""

import contextlib
import itertools
import json
import mmap
import struct
import threading
import time
from collections.abc import Callable, Iterator
from os import PathLike
from typing import NamedTuple

from ringzero import processes
from ringzero.record import sources
from ringzero.record.operation import COMMUNICATION, COMPUTE, HEADER, Operation

CAPACITY = 2**20  # records; the file is sparse, so room costs nothing until it is used. More are only counted
# A record: kind, dtype, peer, bytes, tag, Origin (4), batch, start; and, written later, end, first wait, its thread.
BEGUN = struct.Struct("<BBiqiHIIIid")
RECORD = struct.Struct(BEGUN.format + "ddB")
START, END, WAIT, THREAD = BEGUN.size - 8, BEGUN.size, BEGUN.size + 8, BEGUN.size + 16
TIME, TIME_AND_THREAD = struct.Struct("<d"), struct.Struct("<dB")
HEAD = struct.Struct("<qqq")  # how many records follow, which was waited for last (its offset, or 0), Python threads
COUNT, WAITED = struct.Struct("<q"), struct.Struct("<qq")  # its parts, which different threads write
NONE = -1  # no peer, no batch
DROPPED = -1.0  # in place of the time of the first wait: nobody waits, or can wait any more
MOST_THREADS = 255  # all later threads have this number

KINDS = (
    *("send", "recv", "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "reduce_scatter"),
    *("all_to_all", "barrier", HEADER),
)
_KIND = {kind: code for code, kind in enumerate((*KINDS, COMPUTE))}
_COMPUTE = _KIND[COMPUTE]  # a record of computing: the field ``called`` is the number of its kind

_recorder: "Recorder | None" = None  # of this process


class Origin(NamedTuple):
    """What the messages of one collective have in common; each field is the number of a name, but for ``call``."""

    group: int
    location: int
    call: int = 0
    called: int = 0


class Recorder:
    """Writes one rank's records to ``path`` and the groups, types, lines and calls they name to ``path`` + ".names"."""

    def __init__(self, path: str | PathLike, rank: int):
        with open(path, "wb") as file:
            file.truncate(HEAD.size + CAPACITY * RECORD.size)
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._memory.madvise(mmap.MADV_RANDOM)  # else the first record reads ahead, megabytes of nothing on some disks
        self._path, self._rank, self._lock = path, rank, threading.Lock()
        self.may_lose = False  # whether the program goes on when other ranks are lost
        self._names = open(f"{path}.names", "w", buffering=1)  # noqa: SIM115  (open as long as the rank lives)
        self._numbers: dict[str, dict] = {"group": {}, "line": {}, "dtype": {}, "called": {}}
        self._count = self._calls = 0
        self._batches, self._mine = itertools.count(), threading.local()  # .batch: that of this thread, if in one
        self._threads: dict[int, int] = {}
        self._thread_numbers = itertools.count()
        self.notes_heads = False  # whether ``note_head`` is to be called for each message sent

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
            self._calls += 1
            name = self._number("called", called, _itself)
            return Origin(self._number("group", group, describe), self._location(), self._calls, name)

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
                self._memory[offset + THREAD] = self._thread()
            return offset

    def _write(self, kind, peer, size, dtype, tag, origin):
        if self._count >= CAPACITY:
            self._count += 1  # so that who reads knows how many are missing
            COUNT.pack_into(self._memory, 0, self._count)
            return None
        offset = HEAD.size + self._count * RECORD.size
        peer = NONE if peer is None else peer
        dtype, batch = self._number("dtype", dtype, _type_name), getattr(self._mine, "batch", NONE)
        BEGUN.pack_into(
            self._memory, offset, _KIND[kind], dtype, peer, size, tag, *origin, batch, time.time()
        )  # fmt: skip
        self._count += 1
        COUNT.pack_into(self._memory, 0, self._count)
        return offset

    def _number(self, what, thing, describe):
        """The number of a ``thing``, and its name into the file of names when it comes for the first time."""
        numbers = self._numbers[what]
        if thing not in numbers:
            numbers[thing] = len(numbers)
            self._names.write(json.dumps([what, numbers[thing], *describe(thing)]) + "\n")
        return numbers[thing]

    def _thread(self):
        """Which thread this is, in the order in which they first waited or computed."""
        identity = threading.get_ident()
        if identity not in self._threads:
            self._threads[identity] = min(next(self._thread_numbers), MOST_THREADS)
        return self._threads[identity]

    def begin_batch(self) -> None:
        """Messages that this thread begins from now on are one batch."""
        self._mine.batch = next(self._batches)

    def end_batch(self) -> None:
        """And here it ends."""
        self._mine.batch = NONE

    def note_head(self, offset: int | None, value: float) -> None:
        """Keep ``value``, a number, as the first element of the message recorded at ``offset``."""
        if offset is not None:
            self._names.write(json.dumps(["head", (offset - HEAD.size) // RECORD.size, value]) + "\n")

    @property
    def count(self) -> int:
        """How many operations there were so far."""
        return self._count

    def records(self) -> list[Operation]:
        """What was written so far."""
        return read(self._path, self._rank)

    def close(self) -> None:
        """Close the files. A rank never does: they outlive it."""
        self._names.close()
        self._memory.close()

    def begins_to_wait(self, offset: int | None, from_its_start: bool = False) -> None:
        """Note that this thread now waits for the operation recorded at ``offset``, or has ``from_its_start``."""
        if offset is not None:
            (when,) = TIME.unpack_from(self._memory, offset + START) if from_its_start else (time.time(),)
            TIME_AND_THREAD.pack_into(self._memory, offset + WAIT, when, self._thread())
            WAITED.pack_into(self._memory, COUNT.size, offset, threading.active_count())

    def was_waited_for(self, offset: int | None) -> None:
        """Note that the program asked to wait for the operation recorded at ``offset``, and went on."""
        if offset is not None:
            TIME_AND_THREAD.pack_into(self._memory, offset + WAIT, time.time(), self._thread())

    def was_not_waited_for(self, offset: int) -> None:
        """Take back what was noted of waiting for the operation recorded at ``offset``."""
        TIME.pack_into(self._memory, offset + WAIT, 0.0)

    def was_dropped(self, offset: int) -> None:
        """Note that the handle of the operation recorded at ``offset`` is gone, and nobody has waited for it."""
        with contextlib.suppress(ValueError):  # the file is closed
            TIME.pack_into(self._memory, offset + WAIT, DROPPED)

    def has_ended(self, offset: int | None) -> None:
        """Note that the operation recorded at ``offset`` is over: it was waited for, or computed."""
        if offset is not None:
            TIME.pack_into(self._memory, offset + END, time.time())

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


def start(path: str | PathLike, rank: int) -> Recorder:
    """From now on this process, ``rank``, records into ``path``."""
    global _recorder
    _recorder = Recorder(path, rank)
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


def waiting(path: str | PathLike) -> tuple[int, int] | None:
    """What the rank that writes ``path`` waits for now, a pair that is another in each wait; None if it does not wait.

    A rank with more Python threads than one does not count as waiting: another thread may do what it waits for.
    """
    try:
        with open(path, "rb", opener=processes.regular) as file:
            count, offset, threads = HEAD.unpack(file.read(HEAD.size))
            file.seek(offset + END)
            (ended,) = TIME.unpack(file.read(TIME.size))
    except (OSError, struct.error):  # no such file, or nonsense in its place
        return None
    return (count, offset) if offset and threads == 1 and not ended else None


def read(path: str | PathLike, rank: int) -> list[Operation]:
    """The operations that ``rank`` wrote to ``path``, oldest first; empty if it wrote none, or something else."""
    try:
        return _read(path, rank)
    except (FileNotFoundError, struct.error, ValueError, LookupError, TypeError):
        return []


def _read(path, rank):
    with (
        open(path, "rb", opener=processes.regular) as file,
        open(f"{path}.names", opener=processes.regular) as names,
    ):
        count, _, _ = HEAD.unpack(file.read(HEAD.size))
        content = file.read(min(count, CAPACITY) * RECORD.size)
        whole = (line for line in names if line.endswith("\n"))  # the last one is not, if the rank died in it
        named = {(what, number): values for what, number, *values in map(json.loads, whole)}
    read = [_operation(rank, sequence, row, named) for sequence, row in enumerate(RECORD.iter_unpack(content))]
    if count > CAPACITY:
        read[-1] = read[-1]._replace(missing=count - CAPACITY)
    return read


def _operation(rank, sequence, row, named):
    """The Operation of one record; ``named`` has the content of the file of names."""
    kind, dtype, peer, size, tag, group, location, call, called, batch, start, end, wait, thread = row
    common = {
        "rank": rank,
        "start": start,
        "end": end or None,
        "line": named["line", location][0],
        "sequence": sequence,
        "thread": thread,
    }
    if kind == _COMPUTE:
        return Operation(kind=named["called", called][0], stream=COMPUTE, **common)
    name, members = named["group", group]
    return Operation(
        kind=KINDS[kind],
        stream=COMMUNICATION,
        wait=wait if wait > 0 else None,
        bytes=size,
        dtype=named["dtype", dtype][0],
        peer=None if peer == NONE else peer,
        group=name,
        members=tuple(members),
        tag=tag,
        call=call or None,
        called=named["called", called][0] if call else None,
        batch=None if batch == NONE else batch,
        head=named.get(("head", sequence), (None,))[0],
        dropped=wait == DROPPED,
        **common,
    )
