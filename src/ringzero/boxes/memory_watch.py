"""What boxes may take of the machine's memory and processes: no more than a limit."""

import contextlib
import os
import threading
from collections.abc import Callable
from types import TracebackType

import psutil

from ringzero.boxes.sandbox import LOOK_SECONDS, Limits


class MemoryWatch:
    """While it is entered, all boxes of what this process started take at most ``limits.memory``: the largest process
    of a box is killed where it is more. So is each process outside that takes more itself: it may read what a box left.
    Where the boxes share a user with others, more than ``limits.processes`` processes and threads are killed, too.
    ``told`` is called with a sentence then."""

    def __init__(self, limits: Limits, told: Callable[[str], None]):
        self._limits, self._told, self._over = limits, told, threading.Event()

    def __enter__(self) -> "MemoryWatch":
        self._thread = threading.Thread(target=self._watch, name="memory of the boxes", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            boxed, outside = _started()
            for process in outside:
                if _resident(process) > self._limits.memory:
                    self._end(process, "what reads the results was ended, at most {}")
            if os.getuid() != 0 and sum(map(_threads, boxed)) > self._limits.processes:
                for process in boxed:
                    with contextlib.suppress(psutil.Error):
                        process.kill()
                self._told(f"PROCESS LIMIT: all were ended, at most {self._limits.processes} processes and threads")
                continue
            if sum(map(_resident, boxed)) > self._limits.memory:  # what forks share is counted more than once
                sizes = {process: _own_share(process) for process in boxed}
                if sum(sizes.values()) > self._limits.memory:
                    largest = max(sizes, key=lambda process: sizes[process])
                    self._end(largest, "the largest process was ended, at most {} for all")

    def _end(self, process: psutil.Process, sentence: str) -> None:
        with contextlib.suppress(psutil.Error):  # it may have ended by itself; the watch goes on
            process.kill()
            self._told(f"MEMORY LIMIT: {sentence.format(f'{self._limits.memory / 2**30:g} GiB')}")


def _started() -> tuple[list[psutil.Process], list[psutil.Process]]:
    """The processes in boxes of what this process started, and those outside."""
    boxed: dict[int, psutil.Process] = {}
    outside: dict[int, psutil.Process] = {}
    boxes = set()
    for process in psutil.Process().children(recursive=True):  # each behind its parent
        with contextlib.suppress(psutil.Error):
            parent = process.ppid()
            (boxed if parent in boxed or parent in boxes else outside)[process.pid] = process
            if process.name() == "bwrap":
                boxes.add(process.pid)
    return list(boxed.values()), list(outside.values())


def _resident(process: psutil.Process) -> int:
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0


def _threads(process: psutil.Process) -> int:
    try:
        return process.num_threads()
    except psutil.Error:
        return 0


def _own_share(process: psutil.Process) -> int:
    try:
        return process.memory_full_info().pss
    except psutil.Error:
        return 0
