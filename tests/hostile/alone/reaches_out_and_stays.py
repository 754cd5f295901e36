"""Connects out and to this machine, writes where it can, and leaves daemons without a parent or an environment."""
# verdict: ok
# %% double
# points: 2
import socket
import ringzero

reached = []
for place in (("127.0.0.1", HOST_PORT), ("1.1.1.1", 53), ("169.254.169.254", 80)):
    try:
        socket.create_connection(place, 1).close()
        reached.append(place)
    except OSError:
        pass
for path in (ringzero.__file__, "/etc/passwd", "/usr/bin/env", "/proc/1/mem", "/sys/kernel/uevent_helper", "/hostile"):
    try:
        open(path, "a").close()
        reached.append(path)
    except OSError:
        pass
assert not reached, reached


def double(x):
    return 2 * x
# %% triple
# points: 3
import os
import subprocess
import sys
import tempfile

subprocess.Popen(["sleep", "3141"])
subprocess.Popen(["setsid", "sleep", "3142"])
subprocess.Popen(["setsid", "sleep", "3143"], env={"PATH": "/usr/bin:/bin"})
for code in ("import time; time.sleep(3144)", "while True: pass  # hostile-loop"):
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            os.execve(sys.executable, [sys.executable, "-c", code], {})
        os._exit(0)
kept = tempfile.mkdtemp(prefix="left-by-a-student-")


def triple(x):
    return 3 * x
