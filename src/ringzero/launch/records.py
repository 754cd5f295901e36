"""Records of what a rank did, in a file that another process can read while the rank hangs and after it crashed.

The file is memory-mapped: writing a record costs a few microseconds and no system call. A record read back is a dict:

    rank      who did it (added when the ranks' records are joined)
    sequence  0, 1, 2, … in the order this rank called
    kind      "send", "recv", "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter",
              "reduce_scatter", "all_to_all", "barrier"; "header" for the 16 bytes in which ringzero's own
              collectives, before the first call of a kind, compare sizes
    call      of a message of ringzero's own collectives: which call of this rank it is part of (1, 2, …), else None
    called    what was called then, such as "all_reduce(op=\"sum\") of 4 elements of torch.float32", else None
    peer      the other rank of a send or recv, the root of a rooted collective, else None; a rank of ``group``
    bytes     size of the tensors this rank passed in
    dtype     their type, such as "float32"
    group     the name of the process group; ``members``, its ranks
    tag       of a send or recv
    line      where in the caller's code, such as "cell 7 line 4"
    start     seconds (``time.time``) at the call; ``wait``, when its completion was first waited for; ``end``, when
              that returned. The last two are None for what never happened.
"""

import json
import mmap
import struct
import sys
import threading
import time
from typing import NamedTuple

from ringzero.launch import leftovers, sources

CAPACITY = 2**20  # records; the file is sparse, so room costs nothing until it is used
RECORD = struct.Struct("<BBiqiHIIIddd")  # kind, dtype, peer, bytes, tag, Origin, start, wait, end
WAIT, END = RECORD.size - 16, RECORD.size - 8  # where in a record the times of waiting are
TIME = struct.Struct("<d")
HEAD = struct.Struct("<qqq")  # how many records follow, which was waited for last (its offset, or 0), Python threads
COUNT = struct.Struct("<q")
NONE = -1  # no peer

KINDS = (
    *("send", "recv", "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "reduce_scatter"),
    *("all_to_all", "barrier", "header"),
)
_KIND = {kind: code for code, kind in enumerate(KINDS)}


class Origin(NamedTuple):
    """What the messages of one collective have in common; each field is the number of a name, but for ``call``."""

    group: int
    location: int
    call: int = 0
    called: int = 0


class Recorder:
    """Writes one rank's records to ``path`` and the groups, types, lines and calls they name to ``path`` + ".names"."""

    def __init__(self, path):
        with open(path, "wb") as file:
            file.truncate(HEAD.size + CAPACITY * RECORD.size)
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        self._path, self._lock = path, threading.Lock()
        self._names = open(f"{path}.names", "w", buffering=1)  # noqa: SIM115  (open as long as the rank lives)
        self._numbers = {"group": {}, "line": {}, "dtype": {}, "called": {}}
        self._count = self._calls = 0

    def operation(self, kind, peer, size, dtype, group, tag, describe):
        """Write one record; its offset in the file, or None when the file is full.

        ``describe(group)`` gives a group's name and its ranks; it is asked once a group.
        """
        with self._lock:  # a program may communicate from several threads
            origin = Origin(self._number("group", group, describe), self._location())
            return self._write(kind, peer, size, dtype, tag, origin)

    def call(self, called, group, describe):
        """Begin a collective that is made of messages, ``called`` in words; the Origin of its messages."""
        with self._lock:
            self._calls += 1
            called = self._number("called", called, lambda called: (called,))
            return Origin(self._number("group", group, describe), self._location(), self._calls, called)

    def message(self, kind, peer, size, dtype, tag, origin):
        """As ``operation``, for a message of a ``call``. There are many, so where it comes from is known."""
        with self._lock:
            return self._write(kind, peer, size, dtype, tag, origin)

    def _write(self, kind, peer, size, dtype, tag, origin):
        if self._count == CAPACITY:
            return None
        offset = HEAD.size + self._count * RECORD.size
        peer = NONE if peer is None else peer
        dtype = self._number("dtype", dtype, _type_name)
        RECORD.pack_into(self._memory, offset, _KIND[kind], dtype, peer, size, tag, *origin, time.time(), 0.0, 0.0)
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

    def records(self):
        return read(self._path)

    def begins_to_wait(self, offset):
        if offset is not None:
            TIME.pack_into(self._memory, offset + WAIT, time.time())
            HEAD.pack_into(self._memory, 0, self._count, offset, threading.active_count())

    def has_waited(self, offset):
        if offset is not None:
            TIME.pack_into(self._memory, offset + END, time.time())

    def _location(self):
        frame = sys._getframe(3)
        while frame.f_back is not None and sources.is_package_code(frame.f_code.co_filename):
            frame = frame.f_back
        return self._number("line", (frame.f_code.co_filename, frame.f_lineno), _place)


def _place(line):
    return (sources.place(*line),)


def _type_name(dtype):
    return (str(dtype).removeprefix("torch."),)


def waiting(path):
    """What the rank that writes ``path`` waits for now, a value that no later wait repeats; None if it does not wait.

    A rank with more Python threads than one does not count as waiting: another thread may do what it waits for.
    """
    try:
        with open(path, "rb", opener=leftovers.regular) as file:
            count, offset, threads = HEAD.unpack(file.read(HEAD.size))
            file.seek(offset + END)
            (ended,) = TIME.unpack(file.read(TIME.size))
    except (FileNotFoundError, struct.error):
        return None
    return (count, offset) if offset and threads == 1 and not ended else None


def read(path):
    """The records of the rank that wrote ``path``, oldest first; empty if it wrote none, or something else."""
    try:
        return _read(path)
    except (FileNotFoundError, struct.error, ValueError, LookupError, TypeError):
        return []


def _read(path):
    with (
        open(path, "rb", opener=leftovers.regular) as file,
        open(f"{path}.names", opener=leftovers.regular) as names,
    ):
        count, _, _ = HEAD.unpack(file.read(HEAD.size))
        content = file.read(min(count, CAPACITY) * RECORD.size)
        named = {(what, number): values for what, number, *values in map(json.loads, names)}
    records = []
    for sequence, row in enumerate(RECORD.iter_unpack(content)):
        kind, dtype, peer, size, tag, group, location, call, called, start, wait, end = row
        name, members = named["group", group]
        records.append(
            {
                "sequence": sequence,
                "kind": KINDS[kind],
                "peer": None if peer == NONE else peer,
                "bytes": size,
                "dtype": named["dtype", dtype][0],
                "group": name,
                "members": members,
                "call": call or None,
                "called": named["called", called][0] if call else None,
                "tag": tag,
                "line": named["line", location][0],
                "start": start,
                "wait": wait or None,
                "end": end or None,
            }
        )
    return records
