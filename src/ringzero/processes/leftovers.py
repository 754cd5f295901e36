"""End the processes and remove the files that a rank's code left behind, whatever they are.

multiprocessing and torch each start a helper process that removes shared memory when its last user has ended. Killed
together with its users, the helper could not, and the segment would stay in /dev/shm. So helpers get a few seconds.
"""

import contextlib
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator

import psutil

TIDY_SECONDS = 3.0  # before a helper is killed too; torch's waits 2 s for another user of a segment
END_SECONDS = 5.0


def end(find: Callable[[], Iterable[psutil.Process]]) -> None:
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


def descendants() -> list[psutil.Process]:
    """The processes that this one started, and that those started. Cheap if there are none. It collects no child."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return []
    return psutil.Process().children(recursive=True)


def marked(variable: str, value: str | None = None) -> Iterator[psutil.Process]:
    """The processes that were started with the environment ``variable``, set to ``value`` unless that is None.

    Linux keeps the environment as it was when the process began, so this finds daemons whose parents have ended.
    """
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            found = process.environ().get(variable)
            if found is not None and value in (None, found) and _lives(process):
                yield process


def remove(directory: str | os.PathLike[str]) -> None:
    """Remove ``directory``, even if its permissions forbid that or it is deeper than Python can walk."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(directory, ignore_errors=True)
    if os.path.islink(directory):
        os.unlink(directory)
    elif os.path.exists(directory):
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(directory)], check=False, stderr=subprocess.DEVNULL)


def regular(path: str, flags: int) -> int:
    """An ``opener`` for files that a rank could replace, say by a pipe, on which reading would wait for ever.

    Raises FileNotFoundError for anything but a regular file.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
    raise FileNotFoundError(f"{path} is no regular file")


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _tidies_up(process: psutil.Process) -> bool:
    return process.name() == "torch_shm_manager" or "multiprocessing.resource_tracker" in " ".join(process.cmdline())
