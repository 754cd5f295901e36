"""What the kernel does with a process when its parent ends: Linux's ``prctl``, nothing on other systems."""

import contextlib
import ctypes
import signal
import sys
from typing import Any

_PDEATHSIG, _DUMPABLE, _SET_SUBREAPER, _GET_SUBREAPER = 1, 4, 36, 37  # <linux/prctl.h>


def die_with_parent() -> None:
    """In a new child: have the kernel kill this process when its parent ends, however the parent ends."""
    _prctl(_PDEATHSIG, signal.SIGKILL)


def adopt_orphans(adopt: bool = True) -> None:
    """Make this process the parent of descendants whose own parent has ended, so that it can find and end them."""
    _prctl(_SET_SUBREAPER, int(adopt))


def adopts_orphans() -> bool:
    """Whether ``adopt_orphans`` is in force."""
    value = ctypes.c_int()
    _prctl(_GET_SUBREAPER, ctypes.byref(value))
    return bool(value.value)


def stay_visible() -> None:
    """After a change of its rights: let other processes of this user look into this one, as before."""
    _prctl(_DUMPABLE, 1)


def _prctl(option: int, argument: Any) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # a libc without prctl
            ctypes.CDLL(None).prctl(option, argument, 0, 0, 0)
