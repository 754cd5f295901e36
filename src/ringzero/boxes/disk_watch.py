"""What boxes may write of the machine's own disk: the folders that were given to them, and no more than a limit."""

import subprocess
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

import psutil

from ringzero.boxes.sandbox import LOOK_SECONDS

BYTES_OF_A_FILE = 4096  # so much counts a file at least: an empty one takes one of the disk's inodes


class DiskWatch:
    """While it is entered, each of ``folders`` holds at most ``limit`` bytes: where it is more, or where it cannot be
    looked through, the boxes that can write there are ended. ``told`` is called with a sentence then."""

    def __init__(self, folders: Iterable[Path], limit: int, told: Callable[[str], None]):
        self._folders, self._limit, self._told, self._over = list(folders), limit, told, threading.Event()

    def __enter__(self) -> "DiskWatch":
        self._thread = threading.Thread(target=self._watch, name="disk of the boxes", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
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
