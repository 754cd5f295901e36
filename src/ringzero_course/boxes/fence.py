"""Nothing a notebook started outlives its grading.

Every process below a graded kernel inherits one environment variable, the mark. Ranks have sessions of their own and
daemons lose their parent, but Linux keeps a process's environment as it was at the start, so the mark finds them.
A process that was started with an empty environment is found another way: while a notebook runs, the grader adopts
orphans (PR_SET_CHILD_SUBREAPER), so a child that the grader did not have before is the notebook's.
"""

import contextlib
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from ringzero.processes.leftovers import marked, remove
from ringzero.processes.parents import adopt_orphans, adopts_orphans
from ringzero.processes.temporary import LONGEST, short_temporary_folder

MARK = "RINGZERO_GRADING"
BELOW = len("/rz-grade-4194304-abcdefgh/ranks")  # the longest name of a folder that ranks have their sockets in
ROOM_BYTES, ROOM_FILES = 2**24, 64  # what a notebook needs at least
SWEEP_SECONDS = 60.0  # a killed process that is still there after this cannot be killed


class Fence:
    """A scratch folder and a marked environment for one notebook; ``with Fence() as fence`` leaves neither behind.

    ``fence.folder`` is the kernel's working directory, ``fence.environment`` what to start it with.
    """

    def __enter__(self) -> "Fence":
        me = psutil.Process()
        self._mark = f"{me.pid}/{int(me.create_time())}/{time.monotonic_ns()}"
        self._before = set(me.children())
        self._was_reaper = adopts_orphans()
        adopt_orphans()
        base = Path(tempfile.mkdtemp(prefix=f"rz-grade-{me.pid}-", dir=short_temporary_folder(BELOW)))
        self._base = base
        self.folder = base / "work"
        for name in ("work", "tmp", "ipython"):
            (base / name).mkdir()
        self.environment = {
            **os.environ,
            MARK: self._mark,
            "TMPDIR": str(base / "tmp"),
            "IPYTHONDIR": str(base / "ipython"),  # a start-up file left by one student would run for the next
        }
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            self.sweep()
        finally:
            if not self._was_reaper:
                adopt_orphans(False)
            remove(self._base)

    def sweep(self) -> None:
        """Kill what the notebook started until nothing is left. Raises RuntimeError when something does not die."""
        deadline = time.monotonic() + SWEEP_SECONDS
        while alive := self._alive():
            for process in alive:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            if time.monotonic() > deadline:
                raise RuntimeError(f"processes that do not die: {alive}")
            psutil.wait_procs(alive, timeout=0.2)

    def _alive(self) -> list[psutil.Process]:
        """The notebook's processes that still run; dead ones that are the grader's to collect are collected."""
        found = {process.pid: process for process in marked(MARK, self._mark)}
        session = os.getsid(0) if hasattr(os, "getsid") else None
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.Error, OSError):
                if child in self._before or os.getsid(child.pid) == session:
                    continue
                if child.status() == psutil.STATUS_ZOMBIE:
                    os.waitpid(child.pid, os.WNOHANG)
                else:
                    found[child.pid] = child
        return list(found.values())


def why_not_in_the_usual_folder() -> str | None:
    """Why notebooks that are graded do not have their files in the usual temporary folder; None if they do."""
    usual = os.path.realpath(tempfile.gettempdir())
    if (used := short_temporary_folder(BELOW)) == usual:
        return None
    return (
        f"grading has its files in {used}, and not in {usual}: the name is too long for sockets in it, "
        f"{len(usual)} characters where {LONGEST - BELOW - 1} fit"
    )


def why_no_room() -> str | None:
    """Why the folder in which grading has its files has no room for a notebook's, as a sentence; None if it has."""
    try:
        with tempfile.TemporaryDirectory(dir=short_temporary_folder(BELOW)) as folder:
            for number in range(ROOM_FILES):
                Path(folder, str(number)).write_bytes(bytes(ROOM_BYTES // ROOM_FILES))
    except OSError as error:
        return f"grading has no room for its files: {error}"
    return None


def end_leftovers() -> None:
    """End what graders left behind that were killed themselves: marked processes and scratch folders."""
    for process in marked(MARK):
        with contextlib.suppress(psutil.Error, ValueError):
            pid, created, _ = process.environ()[MARK].split("/")
            if not _is_running(int(pid), int(created)):
                process.kill()
    for folder in Path(short_temporary_folder(BELOW)).glob("rz-grade-*-*"):
        pid = folder.name.split("-")[2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            remove(folder)


def _is_running(pid: int, created: int) -> bool:
    try:
        return abs(psutil.Process(pid).create_time() - created) < 2
    except psutil.Error:
        return False
