"""The watch over the memory of what a grader started."""

import subprocess
import sys
import time
from dataclasses import replace

from ringzero_course.boxes import sandbox, watches

MUCH = "x = bytearray(300_000_000)\nfor i in range(0, len(x), 4096): x[i] = 1\ninput()"


def test_who_takes_too_much_is_ended_and_the_watch_goes_on_after_one_that_ended_by_itself(monkeypatch):
    """A process may be gone between the look at its size and the signal: the next one is watched all the same."""
    gone = subprocess.Popen([sys.executable, "-c", "pass"])
    gone_already, sizes = watches.psutil.Process(gone.pid), watches._resident
    gone.wait()
    large = subprocess.Popen([sys.executable, "-c", MUCH], stdin=subprocess.PIPE)
    # Not all that this process started: other tests' ranks may be among it.
    watched = [gone_already, watches.psutil.Process(large.pid)]
    monkeypatch.setattr(watches, "_started", lambda: ([], watched))
    monkeypatch.setattr(watches, "_resident", lambda process: 2**40 if process is gone_already else sizes(process))
    told: list[str] = []
    try:
        with watches.MemoryWatch(replace(sandbox.Limits(), memory=2**28), told.append):
            large.wait(timeout=60)
        assert large.returncode == -9
        assert told[:1] == ["MEMORY LIMIT: what reads the results was ended, at most 0.25 GiB"]
    finally:
        large.kill()
        large.communicate()


def test_what_is_outside_of_boxes_and_small_is_left_alone():
    small = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    told: list[str] = []
    try:
        assert small.pid in {process.pid for process in watches._started()[1]}
        with watches.MemoryWatch(replace(sandbox.Limits(), memory=2**40), told.append):
            time.sleep(3 * watches.LOOK_SECONDS)
        assert small.poll() is None
        assert told == []
    finally:
        small.kill()
        small.communicate()
