"""Kills every process that it can see, its own parent first."""

# verdict: student fault
# says: KERNEL DIED in cell [4]
# %% triple
import os
import signal

for name in sorted(os.listdir("/proc")):
    if name.isdigit() and int(name) not in (1, os.getpid()):
        try:
            os.kill(int(name), signal.SIGKILL)
        except OSError:
            pass
os.kill(os.getpid(), signal.SIGKILL)
