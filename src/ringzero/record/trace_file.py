"""The file in which a rank's operations are kept: how the rank writes it, and how another process reads it.

It is memory-mapped. So a record costs a few microseconds and no system call, and can be read while the rank hangs and
after it crashed. A file beside it, with ".names" at the end, holds what records name by number: groups, types, lines
and calls, one JSON list a line.

A script may run for days. Of one that is watched the last operations are enough (``read_last``), each with its place
among its like; the room of those before goes back to the disk.
"""

import contextlib
import json
import mmap
import struct
import threading
import time
from collections.abc import Sequence
from os import PathLike
from typing import NamedTuple

from ringzero import processes
from ringzero.record.operation import COMMUNICATION, COMPUTE, HEADER, Operation

CAPACITY = 2**20  # records; the file is sparse, so room costs nothing until it is used. More are only counted
OF_A_SCRIPT = 2**28  # the same for one that may run for days
LAST = 2**15  # how many of its records can be read, at least
# A record: kind, dtype, peer, bytes, tag, recorder.Origin (4), batch, place, start; later end, first wait, its thread.
BEGUN = struct.Struct("<BBiqiHIIIiId")
RECORD = struct.Struct(BEGUN.format + "ddB")
PLACE = 10  # its number among the fields
START, END, WAIT, THREAD = BEGUN.size - 8, BEGUN.size, BEGUN.size + 8, BEGUN.size + 16
TIME, TIME_AND_THREAD = struct.Struct("<d"), struct.Struct("<dB")
HEAD = struct.Struct("<qqq")  # how many records follow, the last wait's offset (0: none; below 0: torch's), threads
COUNT, WAITED = struct.Struct("<q"), struct.Struct("<qq")  # its parts, which different threads write
NONE = -1  # no peer, no batch
DROPPED = -1.0  # in place of the time of the first wait: nobody waits, or can wait any more
GIVEN = -2.0  # likewise: torch has the future, and no record shows when it waits
MOST_THREADS = 255  # all later threads have this number
UNREADABLE = (FileNotFoundError, struct.error, ValueError, LookupError, TypeError)  # of a file that a rank may change
CLOSED = (ValueError, TypeError)  # what a write into a closed file raises; struct's is a TypeError

KINDS = (
    *("send", "recv", "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "reduce_scatter"),
    *("all_to_all", "barrier", HEADER),
)
CODES = {kind: code for code, kind in enumerate((*KINDS, COMPUTE))}  # of computing, ``called`` has the kind's number


class Writer:
    """Writes records into ``path``, ``capacity`` at most. An ``offset`` says where in the file a record is."""

    def __init__(self, path: str | PathLike, capacity: int = CAPACITY):
        self._capacity = capacity
        with open(path, "wb") as file:
            file.truncate(HEAD.size + capacity * RECORD.size)
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._memory.madvise(mmap.MADV_RANDOM)  # else the first record reads ahead, megabytes of nothing on some disks
        self._names = open(f"{path}.names", "w", buffering=1)  # noqa: SIM115  (open as long as the rank lives)
        self.count = 0  # of all operations, those for which there was no room too

    def append(
        self, kind: str, dtype: int, peer: int | None, size: int, tag: int, origin: Sequence[int], batch: int | None,
        place: int = 0,
    ) -> int | None:  # fmt: skip
        """Write a record that begins now. Returns its offset, or None where the file is full."""
        offset = HEAD.size + self.count * RECORD.size if self.count < self._capacity else None
        if offset is not None:
            peer, batch = NONE if peer is None else peer, NONE if batch is None else batch
            BEGUN.pack_into(
                self._memory, offset, CODES[kind], dtype, peer, size, tag, *origin, batch, place, time.time()
            )
        self.count += 1
        COUNT.pack_into(self._memory, 0, self.count)
        return offset

    def name(self, what: str, number: int, values: Sequence) -> None:
        """Say what ``number`` stands for."""
        self._names.write(json.dumps([what, number, *values]) + "\n")

    def head(self, offset: int, value: float) -> None:
        """The first element of a message."""
        self.name("head", (offset - HEAD.size) // RECORD.size, [value])

    def start_of(self, offset: int) -> float:
        """When an operation began."""
        return TIME.unpack_from(self._memory, offset + START)[0]

    def wait(self, offset: int, when: float, thread: int, now: bool) -> None:
        """When an operation was first waited for, and by which thread; ``now``: which waits now (see ``waiting``)."""
        TIME_AND_THREAD.pack_into(self._memory, offset + WAIT, when, thread)
        if now:
            WAITED.pack_into(self._memory, COUNT.size, offset, threading.active_count())

    def given_to_torch(self, offset: int) -> None:
        """Torch's own code has the operation's future and may wait for it unseen, as DDP does in a backward pass."""
        TIME.pack_into(self._memory, offset + WAIT, GIVEN)
        WAITED.pack_into(self._memory, COUNT.size, -offset, threading.active_count())

    def not_waited_for(self, offset: int, dropped: bool) -> None:
        """Nobody waits for an operation; with ``dropped`` nobody can any more."""
        TIME.pack_into(self._memory, offset + WAIT, DROPPED if dropped else 0.0)

    def computed_by(self, offset: int, thread: int) -> None:
        """Which thread computes."""
        self._memory[offset + THREAD] = thread

    def end(self, offset: int) -> None:
        """An operation ends now."""
        TIME.pack_into(self._memory, offset + END, time.time())

    def forget(self, before: int) -> None:
        """Give the disk the room of the records before number ``before``; where a system cannot, they stay."""
        page = mmap.PAGESIZE
        whole = (HEAD.size + before * RECORD.size) // page * page - page  # without the first page, which has the head
        with contextlib.suppress(OSError, AttributeError):
            if whole > 0:
                self._memory.madvise(mmap.MADV_REMOVE, page, whole)

    def close(self) -> None:
        """Close the files. A rank never does: they outlive it."""
        self._names.close()
        self._memory.close()


class Wait(NamedTuple):
    """A rank's wait: how many operations it has begun and which of them it waits for, so that each wait is another.

    ``unseen``: only torch's own code can wait (``given_to_torch``), so that the rank may be at work instead.
    ``threads`` are its Python threads, of which another may do what this one waits for.
    """

    operations: int
    offset: int
    unseen: bool
    threads: int


def waiting(path: str | PathLike) -> Wait | None:
    """What the rank that writes ``path`` waits for now; None if it does not wait."""
    try:
        with open(path, "rb", opener=processes.regular) as file:
            count, offset, threads = HEAD.unpack(file.read(HEAD.size))
            file.seek(abs(offset) + END)
            (ended,) = TIME.unpack(file.read(TIME.size))
    except (OSError, struct.error):  # no such file, or nonsense in its place
        return None
    return Wait(count, abs(offset), offset < 0, threads) if offset and not ended else None


def begun(path: str | PathLike) -> int:
    """How many operations the rank that writes ``path`` has begun."""
    try:
        with open(path, "rb", opener=processes.regular) as file:
            return HEAD.unpack(file.read(HEAD.size))[0]
    except (OSError, struct.error):
        return 0


def read(path: str | PathLike, rank: int) -> list[Operation]:
    """The operations that ``rank`` wrote to ``path``, oldest first; empty if it wrote none, or something else."""
    try:
        return _read(path, rank)
    except UNREADABLE:
        return []


class Last(NamedTuple):
    """A rank's last operations; ``places`` says of each how many of its ``channel`` the rank did before. ``counts``
    says that of the channels whose operations may all be earlier.
    """

    operations: list[Operation]
    places: list[int]
    counts: dict[tuple, int]


def read_last(path: str | PathLike, rank: int) -> Last:
    """The last operations that ``rank`` wrote to ``path``, with what is needed to compare them with another rank's."""
    try:
        count, rows, named = _rows(path, LAST)
    except UNREADABLE:
        return Last([], [], {})
    first = count - len(rows)
    operations = [_operation(rank, first + number, row, named) for number, row in enumerate(rows)]
    counts = {}
    for (what, _), values in named.items():
        if what == "count":
            group, kind, peer, tag, so_far = values
            name, members = named["group", group]
            one = Operation(kind, rank, 0.0, peer=peer, tag=tag, group=name, members=tuple(members))
            counts[channel(one)] = so_far
    return Last(operations, [row[PLACE] for row in rows], counts)


def channel(op: Operation) -> tuple:
    """What operations have in common that ranks count together: the group of collectives, the ends of messages."""
    if not op.is_message:
        return (op.group, *op.members)
    ends = (op.rank, op.peer_rank) if op.kind == "send" else (op.peer_rank, op.rank)
    return ("message", *ends, op.group, op.tag)


def _read(path, rank):
    count, rows, named = _rows(path)
    read = [_operation(rank, sequence, row, named) for sequence, row in enumerate(rows)]
    if count > CAPACITY:
        read[-1] = read[-1]._replace(missing=count - CAPACITY)
    return read


def _rows(path, last=None):
    """``(how many operations there were, the first records or so many of the last, what their numbers stand for)``."""
    with (
        open(path, "rb", opener=processes.regular) as file,
        open(f"{path}.names", opener=processes.regular) as names,
    ):
        count, _, _ = HEAD.unpack(file.read(HEAD.size))
        if last is None:
            content = file.read(min(count, CAPACITY) * RECORD.size)
        else:
            file.seek(HEAD.size + max(count - last, 0) * RECORD.size)
            content = file.read(min(count, last) * RECORD.size)
        whole = (line for line in names if line.endswith("\n"))  # the last one is not, if the rank died in it
        named = {(what, number): values for what, number, *values in map(json.loads, whole)}
    return count, list(RECORD.iter_unpack(content)), named


def _operation(rank, sequence, row, named):
    """The Operation of one record; ``named`` has the content of the file of names."""
    kind, dtype, peer, size, tag, group, location, call, called, batch, _, start, end, wait, thread = row
    common = {
        "rank": rank,
        "start": start,
        "end": end or None,
        "line": named["line", location][0],
        "sequence": sequence,
        "thread": thread,
    }
    if kind == CODES[COMPUTE]:
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
        given=wait == GIVEN,
        **common,
    )
