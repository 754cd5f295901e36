"""Parts for tests of the runner of ``make gpu``: what a part can do to it, in a process of its own."""

import os
import signal
import subprocess
import sys
import time

from ringzero.measure.gpu.parts import Skip


def good(device):
    yield {"device": device, "number": 1}
    yield {"device": device, "number": 2}


def skips(device):
    raise Skip("nvcc is not here")
    yield


def fails(device):
    yield {"number": 1}
    raise RuntimeError("CUDA error: out of memory")


def crashes(device):
    yield {"number": 1}
    print("about to crash", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)


def leaves(device):
    yield {"number": 1}
    os._exit(0)


def writes_no_number(device):
    yield {"number": float("nan")}


def hangs(device):
    """With a process in a session of its own, as ranks have."""
    sleeps = "import time; time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", sleeps], start_new_session=True)
    yield {"number": child.pid}
    time.sleep(600)
