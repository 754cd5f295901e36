"""Faults that the student's code did not cause: a full disk, ranks that cannot start, a rank ended from outside.

They cost no points. A failure that the machine may have caused is tried again; if it stays, a call of our own with the
same number of ranks shows whose fault it is.
"""

import re
import tempfile
import threading
import time

import ringzero
from ringzero.ranks import RankError
from ringzero_course.lab import failure

ROOM_BYTES, ROOM_FILES, ROOM_THREADS = 2**22, 16, 16  # what a rank of a check needs at least
LACKING = re.compile(
    r"No space left on device|Disk quota exceeded|Resource temporarily unavailable|[Cc]an't start new thread"
    r"|Cannot allocate memory|Too many open files"
)
ENDED = re.compile(r"the signal SIG(KILL|TERM)|the process that watched over it|ended with exit status 1 ")


def may_be_ours(what: str) -> bool:
    """Whether the machine can be the cause of a failure, described in words as ``failure`` does."""
    return bool(LACKING.search(what) or ENDED.search(what))


def why_machine_fails(ranks: int, device: str) -> str | None:
    """Why even our own function fails on so many ranks now, as a sentence; None if it returns."""
    try:
        ringzero.launch(_use_the_machine, world_size=ranks, device=device)
    except (RankError, RuntimeError, OSError) as error:
        no_traceback = [
            line for line in str(error).splitlines() if not line.startswith((" ", "Traceback", "The other"))
        ]
        return failure.one_line(" ".join(no_traceback))
    return None


def _use_the_machine() -> None:
    """On a rank: write files and start threads, as torch does. Raises OSError or RuntimeError where that fails."""
    files = [tempfile.TemporaryFile() for _ in range(ROOM_FILES)]  # noqa: SIM115
    for file in files:
        file.write(bytes(ROOM_BYTES // ROOM_FILES))
        file.close()
    threads = [threading.Thread(target=time.sleep, args=(0.1,)) for _ in range(ROOM_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
