"""What stops a whole batch, whoever's turn it is: a gradebook that cannot be used, a full disk."""

import contextlib
import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy.exc

LEAST_FREE = 16 * 2**20  # bytes; below it a write that failed for want of space did so because the disk is full
NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
AGAIN = "Then run the same command again: grades that are finished stay, and the rest is graded."


class StoppedError(BaseException):
    """Says in words why nobody can be graded. Not an Exception: nbgrader would go on with the next student."""


@contextlib.contextmanager
def told(root: Path) -> Iterator[None]:
    """Raise StoppedError for an error that the next student would meet, too. ``root`` is the course directory."""
    try:
        yield
    except Exception as error:
        causes = list(_with_causes(error))  # nbgrader raises its own errors in their place
        free = shutil.disk_usage(root).free
        if free < LEAST_FREE and any(_without_space(cause) for cause in causes):
            why = f"The disk of {root} is full ({free / 1e6:.1f} MB are free). Make room."
        elif broken := next((each for each in causes if isinstance(each, sqlalchemy.exc.OperationalError)), None):
            why = (
                f"The gradebook cannot be used: {str(broken.orig).strip()}. If another program is writing to it, "
                "close that one. If it is on a server, see that the server runs."
            )
        else:
            raise
        raise StoppedError(f"{why} {AGAIN}") from error


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _without_space(error: BaseException) -> bool:
    if isinstance(error, sqlalchemy.exc.OperationalError):
        return "full" in str(error.orig)
    return isinstance(error, OSError) and error.errno in NO_SPACE
