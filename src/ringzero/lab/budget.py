"""How long a lab's calls may hang: 20 s for the first, and 10 s for all that follow.

A function that deadlocks is called by many cells. Paying the full time in each would cost a student minutes and a
grader hours. So a function that hung is not run again, nor is one that calls it, until its cell is run anew; and
after a hang other calls get less time. Calls that end, however slow, cost nothing.
"""

import hashlib
import time
from dataclasses import dataclass

import ringzero
from ringzero.lab.parameters import LabError, notebook_names
from ringzero.launch import RankTimeout

CALL_SECONDS = 20.0
AFTER_A_HANG_SECONDS = 5.0
ALL_HANGS_SECONDS = 30.0


@dataclass(frozen=True)
class Hang:
    """A function that ran out of time, and what it cost. ``code`` is what it looked like on its way to the ranks."""

    function: object
    code: str  # digest of the pickled function
    seconds: float
    what: str

    def is_part_of(self, pickled):
        """Whether ``pickled`` is a function that refers to this one: it then carries its name and instructions."""
        instructions = getattr(getattr(self.function, "__code__", None), "co_code", None)
        return instructions is not None and instructions in pickled and self.function.__name__.encode() in pickled


_hangs = {}  # function name -> Hang


def call_seconds():
    """The time the next call gets."""
    lost = sum(hang.seconds for hang in _hangs.values())
    if not lost:
        return CALL_SECONDS
    return max(1.0, min(AFTER_A_HANG_SECONDS, (ALL_HANGS_SECONDS - lost) / 2))


def hung(name, function, pickled, seconds, what):
    """Remember that ``function`` ran out of its ``seconds``."""
    before = _hangs[name].seconds if name in _hangs else 0.0
    _hangs[name] = Hang(function, _digest(pickled), before + seconds, what)


def why_not_again(name, function, pickled):
    """Why ``function`` need not be tried: it hung before, or calls one that did. None if it is new."""
    defined = notebook_names()
    for other, hang in list(_hangs.items()):
        newest = function if other == name else defined.get(other, hang.function)
        if newest is not hang.function or (other == name and hang.code != _digest(pickled)):
            del _hangs[other]  # another version: what the old one cost no longer counts
    if name in _hangs:
        return f"not run again: {_hangs[name].what}"
    for other, hang in _hangs.items():
        if hang.is_part_of(pickled):
            return f"not run: it calls {other}, and {hang.what}"
    return None


def _digest(pickled):
    return hashlib.sha256(pickled).hexdigest()


def launch(fn, *args, **options):
    """``ringzero.launch`` within the lab's time budget."""
    import cloudpickle

    name = getattr(fn, "__name__", repr(fn))
    try:
        pickled = cloudpickle.dumps(fn)  # without its arguments: a tensor does not pickle to the same bytes twice
    except Exception:  # ringzero.launch says what and why
        return ringzero.launch(fn, *args, **options)
    known = why_not_again(name, fn, pickled)
    if known is not None:
        raise LabError(f"{name}: {known}.")
    seconds, start = options.pop("timeout", call_seconds()), time.monotonic()
    try:
        return ringzero.launch(fn, *args, timeout=seconds, **options)
    except RankTimeout:
        hung(name, fn, pickled, min(seconds, time.monotonic() - start), f"{name} hung")
        raise
