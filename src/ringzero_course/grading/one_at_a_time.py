"""One grader at a time on a course: a lock that ends with the process that holds it, however that ends."""

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path


class BusyError(RuntimeError):
    """Another grader works on the course; the message says which."""


@contextlib.contextmanager
def grading(root: Path, what: str, wait: bool, say: Callable[[str], object]) -> Iterator[None]:
    """Hold the lock of the course directory ``root`` while grading ``what``.

    While another grader holds it, wait and ``say`` who that is; with ``wait=False`` raise BusyError instead.
    """
    root.mkdir(parents=True, exist_ok=True)
    with open(root / ".grading", "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            message = f"another grader is at work on {root}: {file.read().strip() or 'it does not say which'}"
            if not wait:
                raise BusyError(message) from None
            say(f"{message}. Waiting for its end.")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}, {what}, since {time.strftime('%d %b %H:%M:%S')}")
        file.flush()
        yield  # closing the file, or the end of the process, gives the lock back
