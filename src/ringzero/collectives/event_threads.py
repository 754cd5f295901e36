"""gloo's event threads, and how Linux schedules them.

Such a thread polls sockets. While the thread that calls gloo holds a connection's lock it tries again at once, and
again; if it took the caller's core at that moment, it burns its time slice, 3 to 4 ms, waiting for a thread it keeps
from running. As a batch thread it takes an idle core, or waits until the caller sleeps: a small all-reduce of 4 ranks
on 2 cores then takes a fifth of the time. Needs no privilege; elsewhere than on Linux nothing happens.

Between machines a message takes longer than that, and to hide it behind computing the thread must react at once.
"""

import os
from pathlib import Path


def calm():
    """If all ranks share this machine, ask that the event threads this process has now not preempt who calls gloo."""
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):
        _schedule("SCHED_BATCH")


def as_gloo_has_them():
    """Take that back."""
    _schedule("SCHED_OTHER")


def _schedule(policy):
    for task in Path("/proc/self/task").iterdir() if hasattr(os, policy) else ():
        try:
            if (task / "comm").read_text().strip() == "gloo_tcp_loop":
                os.sched_setscheduler(int(task.name), getattr(os, policy), os.sched_param(0))
        except OSError:  # the thread has ended, or a container forbids it
            pass
