"""Nothing a notebook started outlives its grading.

Every process below a graded kernel carries one environment variable, which Linux keeps as it was when the
process was started: ranks have sessions of their own and daemons have other parents, but they carry the mark.
A process that was started with a clean environment is caught another way: while a notebook runs, the grader
adopts orphans (PR_SET_CHILD_SUBREAPER), so what was not its child before is the notebook's.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import psutil

MARK = "RINGZERO_GRADING"
SWEEP_SECONDS = 10.0
_PDEATHSIG, _SET_SUBREAPER, _GET_SUBREAPER = 1, 36, 37


class Fence:
    """A scratch folder and a marked environment for one notebook; ``with Fence() as fence`` leaves neither behind.

    ``fence.folder`` is the kernel's working directory, ``fence.environment`` what to start it with.
    """

    def __enter__(self):
        me = psutil.Process()
        self._mark = f"{me.pid}/{int(me.create_time())}/{time.monotonic_ns()}"
        self._before = {(child.pid, child.create_time()) for child in me.children()}
        self._was_reaper = _subreaper()
        _set_subreaper(True)
        base = Path(tempfile.mkdtemp(prefix=f"rz-grade-{me.pid}-", dir=_short_temp()))
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

    def __exit__(self, *_):
        try:
            self.sweep()
        finally:
            if not self._was_reaper:
                _set_subreaper(False)
            shutil.rmtree(self._base, ignore_errors=True)

    def sweep(self):
        """Kill what the notebook started until nothing is left. Raises RuntimeError when something does not die."""
        deadline = time.monotonic() + SWEEP_SECONDS
        while alive := self._alive():
            for process in alive:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            if time.monotonic() > deadline:
                raise RuntimeError(f"processes that do not die: {alive}")
            psutil.wait_procs(alive, timeout=0.2)

    def _alive(self):
        """The notebook's processes that still run; dead ones that are the grader's to collect are collected."""
        found = {process.pid: process for process in _marked(self._mark)}
        session = os.getsid(0) if hasattr(os, "getsid") else None
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.Error, OSError):
                if (child.pid, child.create_time()) in self._before or os.getsid(child.pid) == session:
                    continue
                if child.status() == psutil.STATUS_ZOMBIE:
                    os.waitpid(child.pid, os.WNOHANG)
                else:
                    found[child.pid] = child
        return list(found.values())


def end_leftovers():
    """End what graders that were themselves killed left behind: marked processes and scratch folders."""
    for process in _marked(""):
        with contextlib.suppress(psutil.Error, ValueError):
            pid, created, _ = process.environ()[MARK].split("/")
            if not _is_running(int(pid), int(created)):
                process.kill()
    for folder in Path(_short_temp()).glob("rz-grade-*-*"):
        pid = folder.name.split("-")[2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


def die_with_parent():
    """In a new child: ask the kernel to kill it when the grader dies, however it dies (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _marked(mark):
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            found = process.environ().get(MARK)
            if found is not None and found.startswith(mark) and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def _is_running(pid, created):
    try:
        return abs(psutil.Process(pid).create_time() - created) < 2
    except psutil.Error:
        return False


def _short_temp():
    """Unix socket paths are limited to about 100 characters, so scratch folders do not go under a long TMPDIR."""
    base = tempfile.gettempdir()
    return base if len(base) < 40 else "/tmp"


def _subreaper():
    if sys.platform != "linux":
        return False
    value = ctypes.c_int()
    ctypes.CDLL(None).prctl(_GET_SUBREAPER, ctypes.byref(value), 0, 0, 0)
    return bool(value.value)


def _set_subreaper(on):
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_SUBREAPER, int(on), 0, 0, 0)
