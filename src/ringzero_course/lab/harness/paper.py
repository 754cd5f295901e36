"""Functions of plain values, without what the library has of them; the lists that they are given stay as they are."""

from collections.abc import Callable
from copy import deepcopy
from inspect import signature
from typing import Any

from ringzero_course.lab.unaided import UNSYNCED, unaided

# Where the library has what the labs ask for.
LIBRARY = (
    "ringzero.costs",
    "ringzero.steps",
    "ringzero.profiles",
    "ringzero.record.spans",
    "ringzero_course.lab.claims",
)
ANSWERS = (*LIBRARY, "ringzero_course.lab.subjects", *UNSYNCED)


def on_paper(function: Callable, *args: Any, **options: Any) -> Any:
    """What ``function`` returns. Raises ValueError where it changed a list that it was given."""
    given = deepcopy(args)  # several cases may have one list
    with unaided(*ANSWERS):
        found = function(*given, **options)
    for name, value, was in zip(signature(function).parameters, given, args, strict=False):
        if isinstance(was, list) and value != was:
            raise ValueError(f"{function.__name__} changed {name}, a list that it was given: its caller still needs it")
    return found


PLAIN: dict[str, Any] = {"harness": on_paper, "built_from": (), "ranks": 1}  # of a check of a function of plain values
