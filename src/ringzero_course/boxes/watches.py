"""What boxes may take of the machine's memory, processes and disk: no more than a limit."""

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

import psutil

from ringzero_course.boxes.sandbox import Limits

LOOK_SECONDS = 0.5
BYTES_OF_A_FILE = 4096  # so much counts a file at least: an empty one takes one of the disk's inodes


class _Watch:
    """A thread that looks at something again and again while this is entered, and calls ``told`` with sentences."""

    def __init__(self, told: Callable[[str], None]):
        self._told, self._over = told, threading.Event()

    def __enter__(self) -> "_Watch":
        self._thread = threading.Thread(target=self._watch, name=type(self).__name__, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        raise NotImplementedError


class MemoryWatch(_Watch):
    """While it is entered, all boxes of what this process started take at most ``limits.memory``: the largest process
    of a box is killed where it is more. So is each process outside that takes more itself: it may read what a box left.
    Where the boxes share a user with others, more than ``limits.processes`` processes and threads are killed, too.
    ``told`` is called with a sentence then."""

    def __init__(self, limits: Limits, told: Callable[[str], None]):
        super().__init__(told)
        self._limits = limits

    def _look(self) -> None:
        boxed, outside = _started()
        for process in outside:
            if _resident(process) > self._limits.memory:
                self._end(process, "what reads the results was ended, at most {}")
        if os.getuid() != 0 and sum(map(_threads, boxed)) > self._limits.processes:
            for process in boxed:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            self._told(f"PROCESS LIMIT: all were ended, at most {self._limits.processes} processes and threads")
            return
        if sum(map(_resident, boxed)) > self._limits.memory:  # what forks share is counted more than once
            sizes = {process: _own_share(process) for process in boxed}
            if sum(sizes.values()) > self._limits.memory:
                largest = max(sizes, key=lambda process: sizes[process])
                self._end(largest, "the largest process was ended, at most {} for all")

    def _end(self, process: psutil.Process, sentence: str) -> None:
        with contextlib.suppress(psutil.Error):  # it may have ended by itself; the watch goes on
            process.kill()
            self._told(f"MEMORY LIMIT: {sentence.format(f'{self._limits.memory / 2**30:g} GiB')}")


class DiskWatch(_Watch):
    """While it is entered, each of ``folders`` holds at most ``limit`` bytes: where it is more, or where it cannot be
    looked through, the boxes that can write there are ended. ``told`` is called with a sentence then."""

    def __init__(self, folders: Iterable[Path], limit: int, told: Callable[[str], None]):
        super().__init__(told)
        self._folders, self._limit = list(folders), limit

    def _look(self) -> None:
        for folder in self._folders:
            if folder.exists() and self._is_over(folder) and _end_boxes_with(folder):
                self._told(f"DISK LIMIT: what wrote was ended, at most {self._limit / 2**30:g} GiB")

    def _is_over(self, folder: Path) -> bool:
        # Not in Python: its walks end at folders that are deeper than it recurses, or than a path may be long.
        options = "-B1", "--inodes"
        said = [
            subprocess.run(["du", "-s", option, folder], capture_output=True, text=True, check=False)
            for option in options
        ]
        used, files = (int((each.stdout.split() or ["0"])[0]) for each in said)
        return used + BYTES_OF_A_FILE * files > self._limit or "Permission denied" in said[0].stderr


def _end_boxes_with(folder: Path) -> bool:
    """End the boxes in which ``folder`` is. Whether there were any."""
    found = False
    for process in psutil.Process().children(recursive=True):
        try:
            if process.name() == "bwrap" and str(folder) in process.cmdline():
                for child in process.children(recursive=True):
                    child.kill()
                    found = True
        except psutil.Error:
            continue
    return found


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
