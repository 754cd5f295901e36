"""Definitions older than what the notebook shows: a student changed a cell, and the change has no effect yet."""

import ast
import inspect
import re
import sys
from typing import Any

from ringzero.lab.parameters import notebook_names


def why_stale(name: str, value: object) -> str | None:
    """Why ``value`` is not what the cells of the notebook say of ``name`` now, and what to run; None if it is.

    Two cases: a class whose base has been defined anew since, and a cell that was changed and ended with an error
    before it defined the name again.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    older = _older_base(value)
    if older is not None:
        return f"{name} is built on an older {older}: run the cell of {name} again, then this one"
    return _changed_in_vain(shell, name, value) if shell is not None else None


def _older_base(value):
    names = notebook_names()
    for base in value.__mro__[1:] if isinstance(value, type) else ():
        newest = names.get(base.__name__)
        if base.__module__ == "__main__" and isinstance(newest, type) and newest is not base:
            return base.__name__
    return None


def _changed_in_vain(shell, name, value):
    made = _cell_of(shell, value)
    runs = list(shell.user_ns.get("In", ()))  # the text of every run of a cell, by its number
    later = [text for text in runs[made + 1 :] if _defines(text, name)] if made is not None else []
    if not later:
        return None
    try:
        ast.parse(shell.transform_cell(later[-1]))
    except SyntaxError as error:
        why = f"is no Python (line {error.lineno}: {error.msg})"
    else:
        why = f"ended with an error before it defined {name} again"
    return f"the cell of {name} {why}, and what it defined before would be checked: mend it, run it, then this one"


def _defines(text, name):
    return re.search(rf"^(?:def|class)\s+{re.escape(name)}\b", text, flags=re.MULTILINE) is not None


def _cell_of(shell: Any, value: Any) -> int | None:
    """The number of the run that defined a function or class; None where that cannot be told."""
    numbers = getattr(shell.compile, "_filename_map", {})
    functions = vars(value).values() if isinstance(value, type) else [value]
    codes = [getattr(inspect.unwrap(each), "__code__", None) for each in functions if callable(each)]
    found = [numbers[code.co_filename] for code in codes if code is not None and code.co_filename in numbers]
    return max(found, default=None)
