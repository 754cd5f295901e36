"""gloo's event threads, and how Linux schedules them.

An event thread polls sockets. While the thread that calls gloo holds the lock of a connection, the event thread tries
to take the lock again and again without sleeping. If the scheduler has given it the caller's core, the caller cannot
run and release the lock, and the time slice of 3 to 4 ms is lost. A batch thread never takes a core from a running
thread: it waits for an idle core. A small all-reduce of 4 ranks on 2 cores then takes a fifth of the time. This needs
no privilege. On systems other than Linux nothing happens.

Between machines a message takes longer than a time slice, and to hide it behind computation the event thread must
react at once. There the scheduling stays as it is.
"""

import os
from pathlib import Path


def calm() -> None:
    """Make this process's event threads batch threads, if all ranks run on this machine."""
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):
        _schedule("SCHED_BATCH")


def as_gloo_has_them() -> None:
    """Undo ``calm``."""
    _schedule("SCHED_OTHER")


def _schedule(policy):
    for task in Path("/proc/self/task").iterdir() if hasattr(os, policy) else ():
        try:
            if (task / "comm").read_text().strip() == "gloo_tcp_loop":
                os.sched_setscheduler(int(task.name), getattr(os, policy), os.sched_param(0))
        except OSError:  # the thread has ended, or a container forbids it
            pass
