"""The two parameters every lab has, and the notebook's names."""

import inspect
import sys

from ringzero_course.boxes.faults import GraderFault

__all__ = ["GraderFault", "LabError", "cells_that_ran", "check_parameters", "notebook_names", "written"]

_FIX = 'Put a cell with the lines WORLD_SIZE = 4 and DEVICE = "auto" above this one and run it.'


class LabError(RuntimeError):
    """Something a student can put right; shown as its one sentence, without a traceback."""

    def _render_traceback_(self):
        return [f"{type(self).__name__}: {self}"]


def notebook_names() -> dict:
    """The names defined in the notebook (or the script) that is running."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell.user_ns if shell is not None else vars(sys.modules["__main__"])


def cells_that_ran() -> list[str]:
    """The texts of the notebook's cells in the order in which they were run; the number of a cell is its place."""
    cells = notebook_names().get("In")
    return cells if isinstance(cells, list) and all(isinstance(cell, str) for cell in cells) else []


def check_parameters(names: dict | None = None) -> None:
    """Raise LabError, in one sentence with the fix, unless WORLD_SIZE and DEVICE are there and can be used."""
    names = notebook_names() if names is None else names
    missing = [name for name in ("WORLD_SIZE", "DEVICE") if name not in names]
    if missing:
        raise LabError(
            f"{' and '.join(missing)} not defined: the lab's parameters cell is missing or was not run. {_FIX}"
        )
    world_size, device = names["WORLD_SIZE"], names["DEVICE"]
    if isinstance(world_size, bool) or not isinstance(world_size, int) or world_size < 1:
        raise LabError(f"WORLD_SIZE is {world_size!r}; it is the number of ranks, a whole number from 1. {_FIX}")
    if device not in ("auto", "cpu", "cuda", "strict"):
        raise LabError(f'DEVICE is {device!r}; it is "auto", "cpu", "cuda" or "strict". {_FIX}')


def written(*functions: str, names: dict | None = None) -> bool:
    """Whether the notebook's functions of these names are written; if not, say which and return False.

    A function counts as not written while it holds the ``raise NotImplementedError`` it was handed out with, a class
    while one of its methods does. Nothing is called.
    """
    names = notebook_names() if names is None else names
    missing = [name for name in functions if not callable(names.get(name))]
    stubs = [name for name in functions if name not in missing and _is_stub(names[name])]
    for some, what in ((missing, "not defined: run its cell first"), (stubs, "not written yet")):
        if some:
            print(f"{', '.join(some)}: {what}.")
    return not missing and not stubs


def _is_stub(function):
    if isinstance(function, type):
        return any(_is_stub(method) for method in vars(function).values())
    return "NotImplementedError" in getattr(getattr(inspect.unwrap(function), "__code__", None), "co_names", ())
