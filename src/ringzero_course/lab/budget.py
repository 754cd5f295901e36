"""How long a lab's call may take: 20 s where each rank has a core, whatever other functions did.

A function that hangs is called by many cells. Paying the full time in each would cost a student minutes and a grader
hours. So a function or class that hung is not run again, nor is one that uses it, until its cell is run anew. Where
ranks share cores, a call gets so many times more. Where the time is up and the machine is busy with other things, a
call gets another chance, and more time (``slowdown``).
"""

import os
import pkgutil
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import ringzero
from ringzero.ranks import RankTimeout, pool
from ringzero_course.lab import handle, subjects
from ringzero_course.lab.handle import Handle
from ringzero_course.lab.parameters import LabError

CALL_SECONDS = 20.0
BUSY = 1.5  # from this slowdown on a call may have been too slow because of the machine
MOST_PATIENCE = 5.0  # times the usual seconds
PROBE_SECONDS = 0.1
# What checks run on ranks is imported before these are forked, 0.1 s in all; else by each rank in each call.
_SUBJECTS = [f"{subjects.__name__}.{module.name}" for module in pkgutil.iter_modules(subjects.__path__)]
pool.imports += ["ringzero_course.lab.on_rank", *_SUBJECTS]


class Hang(NamedTuple):
    """A function that ran out of time, and the sentence that says so."""

    function: Handle
    what: str


_hangs: dict[str, Hang] = {}  # function name -> Hang


def call_seconds(ranks: int = 1) -> float:
    """The time that a call on so many ranks gets: as long as it takes to give each ``CALL_SECONDS`` of a core."""
    return CALL_SECONDS * max(1.0, ranks / (os.cpu_count() or 1))


def slowdown() -> float:
    """How many times as long as on an idle machine this process takes to compute something now."""
    start, computed = time.monotonic(), time.thread_time()
    while time.thread_time() - computed < PROBE_SECONDS:
        pass
    return (time.monotonic() - start) / PROBE_SECONDS


def patience() -> float | None:
    """How many times its seconds a call should get that ran out of them, or None: the machine was not the cause."""
    slower = slowdown()
    return min(slower, MOST_PATIENCE) if slower >= BUSY else None


def hung(function: Handle, what: str) -> None:
    """Remember that ``function`` ran out of its time."""
    _hangs[function.name] = Hang(function, what)


def why_not_again(*functions: Handle) -> str | None:
    """Why a call of the first function, with the others, need not be tried: one of them hung before, or calls one that
    did. None if nothing is known against it."""
    current = {function.name: function for function in functions}
    for name, hang in list(_hangs.items()):
        now = current.get(name) or handle.newest(hang.function)
        if (now.version, now.code) != (hang.function.version, hang.function.code):
            del _hangs[name]  # another version
    first = functions[0]
    if first.name in _hangs:
        return f"not run again: {_hangs[first.name].what}"
    for name, hang in _hangs.items():
        if name in current or any(hang.function.is_called_by(function) for function in functions):
            return f"not run: it calls {name}, and {hang.what}"
    return None


def launch(fn: Callable, *args: Any, **options: Any) -> ringzero.Ranks:
    """``ringzero.launch`` within the lab's time budget. Raises LabError where ``fn``, or what it calls, hung before."""
    function = handle.of(fn)
    if function.problem is not None:  # ringzero.launch says what is wrong and how to mend it
        return ringzero.launch(fn, *args, **options)
    known = why_not_again(function)
    if known is not None:
        raise LabError(f"{function.name}: {known}.")
    seconds = {"timeout": call_seconds(options.get("world_size", 2))}
    try:
        return ringzero.launch(fn, *args, **seconds | options)
    except RankTimeout as error:
        if "timeout" not in options and not error.deadlocked and (more := patience()) is not None:
            return launch(fn, *args, **options, timeout=more * seconds["timeout"])
        hung(function, f"{function.name} hung")
        raise
