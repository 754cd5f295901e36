"""What a check holds of a student's function: its name, and bytes that the ranks load.

A check never calls a student's function in its own process, nor looks into it. On a student's machine the bytes come
from the check's own kernel, in a grader from another one (``students_kernel``).
"""

import dis
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ringzero.record import sources
from ringzero_course.lab import students_kernel
from ringzero_course.lab.parameters import notebook_names
from ringzero_course.lab.stale import codes_of, why_stale

LONGEST = 200  # characters of an error that a student's kernel may have written


class Handle(NamedTuple):
    """A function or class of a student, by ``name``.

    ``version``       counts its definitions: running its cell again makes another version, even of the same text
    ``code``          the pickled function with all it refers to; only ranks load it
    ``instructions``  its bytecode, or its longest method's, by which it is found in the ``code`` of what uses it
    ``problem``       why there is no code, as a sentence, else None
    ``globals``       the global names that it assigns to
    ``cells``         in which cells it is written, as tracebacks name them: "cell [7]"; of a class, its methods
    """

    name: str
    version: int = 0
    code: bytes = b""
    instructions: bytes = b""
    problem: str | None = None
    cells: frozenset[str] = frozenset()
    globals: tuple[str, ...] = ()

    def is_called_by(self, other: "Handle") -> bool:
        """Whether the other refers to this function or class: its pickle then carries this one's name and bytecode."""
        return bool(self.instructions) and self.instructions in other.code and self.name.encode() in other.code


_seen: dict[str, tuple[object, int]] = {}  # name -> (what it named last, how many definitions of it there have been)


def of(function: str | Callable) -> Handle:
    """The handle of what the notebook calls by this name now (a function can be given itself)."""
    if isinstance(function, str) and students_kernel.is_apart():
        return _from_the_students_kernel(function)
    from ringzero.ranks import by_value

    if isinstance(function, str):
        name, value = function, notebook_names().get(function)
    else:
        name, value = getattr(function, "__name__", "the function"), function
    last, version = _seen.get(name, (None, 0))
    if last is not value:
        version += 1
        _seen[name] = value, version
    if isinstance(function, str) and (why := why_stale(name, value)) is not None:
        return Handle(name, version, problem=why)
    if value is None or not callable(value):
        what = "not defined" if value is None else f"{value!r}, not a function"
        return Handle(name, version, problem=f"{name} is {what}: run the cell that defines it, then this one")
    try:
        _send_the_notebooks_modules()
        code = by_value.dumps(value)
    except Exception as error:
        why = " ".join(str(error).split())[:300]
        problem = f"{name} cannot be sent to the ranks ({why}): create what it needs inside it"
        return Handle(name, version, problem=problem)
    instructions = max((each.co_code for each in codes_of(value)), key=len, default=b"")
    return Handle(name, version, code, instructions, cells=_cells(value), globals=_globals(value))


def _send_the_notebooks_modules():
    """Modules of the notebook's own folder, which a cell may have written, go along: ranks may not see that folder."""
    import cloudpickle

    here, sent = Path.cwd(), cloudpickle.list_registry_pickle_by_value()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).parent == here and name not in {"__main__", *sent}:
            cloudpickle.register_pickle_by_value(module)


def _from_the_students_kernel(name):
    try:
        return Handle(name, **students_kernel.ask(name))
    except students_kernel.NoAnswerError as error:
        return Handle(name, problem=f"{name} cannot be had from the notebook's kernel: {error}")
    except Exception as error:  # a student's kernel may answer anything
        why = f"{type(error).__name__}: {error}"[:LONGEST]
        return Handle(name, problem=f"{name} cannot be had: the notebook's kernel gave something else for it ({why})")


def exported(name: str) -> str:
    """In a student's kernel: the handle of what it calls ``name``, as text for the kernel of the checks."""
    return students_kernel.as_text(of(name))


def _cells(value):
    labels = {name: label for name, (label, _) in sources.collect().items()}
    return frozenset(labels.get(code.co_filename, code.co_filename) for code in codes_of(value))


def _globals(value):
    stores = (step for code in codes_of(value) for step in dis.get_instructions(code) if step.opname == "STORE_GLOBAL")
    return tuple(dict.fromkeys(step.argval for step in stores))


def newest(old: Handle) -> Handle:
    """The handle of what the notebook calls by the same name now; ``old`` if it is nothing of the notebook's."""
    return of(old.name) if students_kernel.is_apart() or old.name in notebook_names() else old
