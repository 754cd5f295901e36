"""End the processes and remove the files that a rank's code left: all of them, soon, whatever they are.

multiprocessing and torch each start a small process that removes shared memory once everybody who used it has gone.
Killed together with the others it could not, and /dev/shm would keep the segment. So it is left alone for a moment.
"""

import contextlib
import os
import shutil
import stat
import subprocess
import time

import psutil

MARK = "RINGZERO_POOL"  # in the environment of all that a pool starts; Linux keeps it as it was when the process began
TIDY_SECONDS = 3.0  # what those that tidy up have for it; torch's waits 2 s for another user
END_SECONDS = 5.0


def end(find):
    """Kill the processes that ``find()`` returns until it finds no more, for at most ``END_SECONDS``."""
    start, pause = time.monotonic(), 0.001
    while alive := [process for process in find() if _lives(process)]:
        waited = time.monotonic() - start
        if waited > END_SECONDS:
            return
        for process in alive:
            with contextlib.suppress(psutil.Error):
                if waited > TIDY_SECONDS or not _tidies_up(process):
                    process.kill()
        pause = min(2 * pause, 0.05)  # a process with torch in it takes milliseconds of a core to end
        time.sleep(pause)


def descendants():
    """The processes below this one; none, without a costly look, when it has no child. Collects no dead child."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return []
    return psutil.Process().children(recursive=True)


def marked(mark):
    """The processes whose environment says that they belong to the pool ``mark``, whoever their parents are now."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark:
                yield process


def remove(directory):
    """Remove ``directory``, though it be closed to its owner or deeper than Python can walk."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(directory, ignore_errors=True)
    if os.path.islink(directory):
        os.unlink(directory)
    elif os.path.exists(directory):
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(directory)], check=False, stderr=subprocess.DEVNULL)


def regular(path, flags):
    """An ``opener`` for files that a rank could replace: a pipe, where reading waits for ever, is as good as none."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    raise FileNotFoundError(f"{path} is no regular file")


def _lives(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _tidies_up(process):
    return process.name() == "torch_shm_manager" or "multiprocessing.resource_tracker" in " ".join(process.cmdline())
