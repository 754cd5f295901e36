"""Claims about a function of plain values: that it gives what a formula gives, or an answer that a seal knows.

A check that students can read must not tell them an answer, so it holds a ``seal`` of it.
"""

import hashlib
import json
import math
from collections.abc import Callable, Collection
from typing import Any

from ringzero_course.lab.claims.values import FP32, number, numbers, one_value
from ringzero_course.lab.runs import Claim

WHOLE = 1e-4  # so near to a whole number, relative to it, a float is that number


def gives(what: str | tuple[str, ...], formula: Callable, tolerance: float = FP32) -> Claim:
    """A claim: called with the same arguments, the function returns what ``formula`` does.

    That is one number, named ``what`` in the reason, or several where ``what`` is a tuple of names.
    """

    def claim(run):
        expected = formula(*run.case.args, **run.case.options)
        if isinstance(what, str):
            return number(what, run.returned[0], expected, tolerance)
        return numbers(what, run.returned[0], expected, tolerance)

    return claim


def counts(formula: Callable) -> Claim:
    """A claim: called with the same arguments, the function returns exactly the whole number that ``formula`` does."""

    def claim(run):
        expected, counted = formula(*run.case.args, **run.case.options), plain_number(run.returned[0])
        if not isinstance(counted, (int, float)) or isinstance(counted, bool):
            return f"returned {counted!r}, not a number"
        return None if counted == expected else f"counted {counted:,}, expected {expected:,}: {counted - expected:+,}"

    return claim


def plain_number(got: Any) -> Any:
    """``got``, where it is a whole number in another form, as an int: 14.0, or a tensor of one number."""
    got = one_value(got)
    return int(got) if isinstance(got, float) and got.is_integer() else got


def is_whole_number(got: object, least: int) -> bool:
    """Whether ``got`` is an int, not a bool, and not below ``least``."""
    return isinstance(got, int) and not isinstance(got, bool) and got >= least


def entry(name: str, right: object, hint: str) -> Claim:
    """A claim: the returned dict has ``right`` under ``name``. ``hint`` is the reason if not."""
    return _entry(name, lambda value: value == right, hint)


def sealed(name: str, digest: str, hint: str, ordered: bool = True) -> Claim:
    """A claim as ``entry``, for a value of which only the ``seal`` is known: it is ``digest``."""
    return _entry(name, lambda value: seal(name, value, ordered) == digest, hint)


def one_of(name: str, choices: Collection) -> Claim:
    """A claim: the returned dict has one of ``choices`` under ``name``."""
    return _entry(name, lambda value: value in list(choices), f"not one of {', '.join(map(repr, choices))}")


def seal(name: str, value: object, ordered: bool = True) -> str:
    """Twelve digits that tell whether an answer is right, and not what it is.

    They are of a hash that takes a tenth of a second, so that trying all answers takes longer than to find one.
    Equal answers in other forms have the same: a tuple or a tensor is a list, 4.0000003 is 4, a measured number counts
    by its first four digits. What is not ``ordered`` may come in any order or as a set, and one thing without its list.
    """
    value = _canonical(value)
    if not ordered:
        value = sorted(value if isinstance(value, list) else [value], key=json.dumps)
    text = json.dumps(value).encode()
    return hashlib.scrypt(text, salt=name.encode(), n=2**15, r=8, p=1, maxmem=2**26, dklen=6).hex()


def _canonical(value):
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_canonical(each) for each in value]
    if isinstance(value, float) and math.isfinite(value):
        near = round(value)
        return near if abs(value - near) <= WHOLE * abs(near) else float(f"{value:.4g}")
    return value.strip() if isinstance(value, str) else repr(value) if isinstance(value, dict) else value


def _entry(name, fits, hint):
    def claim(run):
        answer = run.returned[0]
        if not isinstance(answer, dict) or name not in answer:
            return f"returned {answer!r}, which has no entry {name!r}"
        return None if fits(answer[name]) else f"{name!r} is {answer[name]!r}: {hint}"

    return claim
