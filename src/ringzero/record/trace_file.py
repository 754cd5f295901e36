"""The file in which a rank's operations are kept, and how another process reads it.

It is memory-mapped: what a rank wrote can be read while the rank hangs and after it crashed. A file beside it, with
".names" at the end, holds what records name by number: groups, types, lines and calls, one JSON list a line.
"""

import json
import struct
from os import PathLike

from ringzero import processes
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
CODES = {kind: code for code, kind in enumerate((*KINDS, COMPUTE))}  # of computing, ``called`` has the kind's number


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
        **common,
    )
