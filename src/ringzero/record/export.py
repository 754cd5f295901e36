"""Operations as a file for Perfetto (ui.perfetto.dev) and chrome://tracing."""

import json
from collections.abc import Iterable
from os import PathLike

from ringzero.record.operation import COMPUTE, Operation

STREAMS = 2  # track 2r is what rank r communicates, track 2r + 1 what it computes


def save_chrome_trace(operations: Iterable[Operation], path: str | PathLike) -> None:
    """Write ``operations`` as JSON in the Trace Event Format: a track for each rank, and one for what it computes.

    ``ringzero timeline`` reads it too.
    """
    operations = list(operations)
    ranks, tracks = {op.rank for op in operations}, {_track(op) for op in operations}
    names = {STREAMS * rank: f"rank {rank}" for rank in ranks}
    names |= {STREAMS * rank + 1: f"rank {rank} computes" for rank in ranks if STREAMS * rank + 1 in tracks}
    events = [
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": track, "args": {"name": name}}
        for track, name in sorted(names.items())
    ]
    with open(path, "w") as file:
        json.dump({"traceEvents": events + [_event(op) for op in operations], "displayTimeUnit": "ms"}, file)


def _track(op):
    return STREAMS * op.rank + (op.stream == COMPUTE)


def _event(op):
    arguments = {"line": op.line, "thread": op.thread}
    if op.stream != COMPUTE:
        known = {"peer": op.peer, "wait": None if op.wait is None else op.wait * 1e6, "call": op.call}
        arguments |= {name: value for name, value in known.items() if value is not None}
        arguments |= {"bytes": op.bytes, "dtype": op.dtype, "group": op.group, "members": op.members, "tag": op.tag}
        arguments |= {"called": op.called} if op.called else {}
    return {
        "ph": "X",
        "name": op.kind,
        "cat": op.stream,
        "pid": 0,
        "tid": _track(op),
        "ts": op.start * 1e6,  # microseconds
        "dur": (op.last - op.start) * 1e6,
        "args": arguments,
    }
