"""Definitions older than what the notebook shows: a student changed a cell, and the change has no effect yet."""

import inspect
import re
import sys
from types import CodeType

from ringzero_course.lab.parameters import cells_that_ran, notebook_names


def why_stale(name: str, value: object) -> str | None:
    """Why ``value`` is not what the cells of the notebook say of ``name`` now, and what to run; None if it is.

    Three cases: the cell that defines the name was changed and does not parse; it was changed and ended with an error
    before it came to the definition; or the name is a class, and its base has been defined anew since.
    """
    runs = cells_that_ran()
    definition = re.compile(rf"^(?:async )?(?:def|class) +{re.escape(name)}\b", re.MULTILINE)
    last = next((number for number in range(len(runs) - 1, 0, -1) if definition.search(runs[number])), None)
    if last is not None:
        try:
            compile(_plain_python(runs[last]), f"cell [{last}]", "exec")
        except SyntaxError as error:
            line = f", line {error.lineno}: {(error.text or '').strip()}" if error.lineno else ""
            return (
                f"the cell that defines {name} does not parse ({error.msg} · cell [{last}]{line}): mend it and run it"
            )
        if (made := _run_that_made(value)) is not None and made < last:
            return f"the cell that defines {name} ended with an error before it did so: mend it and run it"
    if (older := _older_base(value)) is not None:
        return f"{name} is built on an older {older}: run the cell of {name} again, then this one"
    return None


def _shell():
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def _plain_python(source):
    """A cell without IPython's own syntax."""
    shell = _shell()
    return source if shell is None else shell.transform_cell(source)


def _run_that_made(value):
    """The number of the run that defined a function or class; None where that cannot be told."""
    numbers = getattr(getattr(_shell(), "compile", None), "_filename_map", {})
    return max((numbers[code.co_filename] for code in codes_of(value) if code.co_filename in numbers), default=None)


def codes_of(value: object) -> list[CodeType]:
    """The code of a function, or of the methods of a class; none for anything else."""
    functions = vars(value).values() if isinstance(value, type) else [value]
    codes = [getattr(inspect.unwrap(each), "__code__", None) for each in functions if callable(each)]
    return [code for code in codes if code is not None]


def _older_base(value):
    names = notebook_names()
    for base in value.__mro__[1:] if isinstance(value, type) else ():
        newest = names.get(base.__name__)
        if base.__module__ == "__main__" and isinstance(newest, type) and newest is not base:
            return base.__name__
    return None
