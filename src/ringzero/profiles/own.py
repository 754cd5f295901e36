"""Traces that this package wrote (``record/export.py``): all ranks in one file, a track or two for each."""

import re
from typing import Any

from ringzero.profiles.files import Events
from ringzero.record.operation import COMMUNICATION, COMPUTE, Operation

KEPT = ("bytes", "dtype", "peer", "group", "tag", "line", "call", "called", "thread")  # as they are
TRACK = re.compile(r"rank (\d+)( computes)?$")


def is_own(trace: Events) -> bool:
    """Whether the events' categories are the streams of ``Operation``."""
    return any(event.get("cat") in (COMMUNICATION, COMPUTE) for event in trace.events)


def operations(trace: Events) -> list[Operation]:
    """The operations that were exported, of all ranks; times are seconds as they were recorded."""
    ranks = {event["tid"]: _rank(event) for event in trace.events if event["ph"] == "M"}
    return [_operation(event, ranks[event["tid"]]) for event in trace.events if event["ph"] == "X"]


def _rank(event: dict[str, Any]) -> int:
    track = TRACK.match(event.get("args", {}).get("name", ""))
    if not track:
        raise ValueError(f"a track of the trace is called {event.get('args')}; its name is that of a rank: rank 3")
    return int(track[1])


def _operation(event, rank):
    start, arguments = event["ts"] / 1e6, event.get("args", {})
    known = {name: arguments[name] for name in KEPT if arguments.get(name) is not None}
    wait = arguments.get("wait")
    return Operation(
        event["name"], rank, start, end=start + event["dur"] / 1e6, stream=event["cat"],
        wait=None if wait is None else wait / 1e6, members=tuple(arguments.get("members", ())), **known,
    )  # fmt: skip
