"""The caller's own lines, in a rank's traceback.

A function typed into a notebook has no file: IPython keeps its source in ``linecache``.
``collect`` gathers those sources in the notebook, ``install`` puts them into a rank's
``linecache``, and ``format_error`` prints a traceback that starts at the caller's code.
"""

import linecache
import sys
import traceback
from functools import lru_cache

_PACKAGE = __file__.replace("\\", "/").rsplit("/record/", 1)[0] + "/"
_COURSE = f"{_PACKAGE[:-1]}_course/"  # it lies beside the library
_HIDDEN = (*(f"{_PACKAGE}{room}/" for room in ("processes", "record", "explain", "strict", "ranks")), f"{_COURSE}lab/")
_INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python")  # in the names of files that no caller has written
_WRAPPERS = ("typing_extensions.py", "/contextlib.py")  # frames of their decorators lie between caller and function
BODY_OF = "body of "  # before the name of a cell whose body runs on ranks (ringzero_course.lab.magic)
_labels: dict[str, str] = {}  # file name -> what a reader calls it, such as "cell [7]"


def collect() -> dict[str, list[str]]:
    """``{filename: [label, source text]}`` of every notebook cell run so far in this process."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return {
        name: [_labels.get(name) or _cell_label(name.removeprefix(BODY_OF), numbers), "".join(entry[2])]
        for name, entry in list(linecache.cache.items())
        if len(entry) == 4 and is_of_a_cell(name)
    }


def is_of_a_cell(filename: str) -> bool:
    """Whether IPython gives files of this name to cells of notebooks."""
    return "ipykernel" in filename or "<ipython" in filename


def installed() -> frozenset[str]:
    """The files that ``install`` made known."""
    return frozenset(_labels)


def _cell_label(name, numbers):
    return f"cell [{numbers[name]}]" if name in numbers else name


def install(sources: dict[str, list[str]]) -> None:
    """Make the cells of ``collect`` known to this process's tracebacks."""
    for name, (label, text) in sources.items():
        # A modification time of None tells linecache never to look for the file.
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        _labels[name] = label


def format_error(error: BaseException) -> str:
    """The traceback of ``error`` without ringzero's and torch's own frames, cells named as the reader knows them."""
    report = traceback.TracebackException.from_exception(error)
    for link in _chain(report):
        own = [frame for frame in link.stack if not is_plumbing(frame.filename)]
        link.stack = traceback.StackSummary.from_list(
            traceback.FrameSummary(label(frame.filename), frame.lineno, frame.name, line=frame.line)
            for frame in own or link.stack[-1:]
        )
    return "".join(report.format()).rstrip("\n")


def label(filename: str) -> str:
    """What a reader calls the file: "cell [7]", or its name."""
    return _labels.get(filename, filename)


def place(filename: str, line: int) -> str:
    """Where a line of the caller's is, as a reader says it: "cell 7 line 4", "train.py line 12"."""
    return place_of(label(filename), line)


def place_of(name: str, line: int) -> str:
    """The same for a file by its label."""
    name = name.strip('"').rsplit("/", 1)[-1]
    return f"{name.replace('[', '').replace(']', '') if name.startswith('cell [') else name} line {line}"


def callers_line() -> tuple[str, int]:
    """The file and number of the caller's line: the innermost that is neither ringzero's nor torch's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_package_code(frame.f_code.co_filename):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


@lru_cache(maxsize=4096)
def is_package_code(filename: str) -> bool:
    """Whether the code of this file is torch's or ringzero's own rather than the caller's."""
    name = filename.replace("\\", "/")
    return is_plumbing(name) or "/torch/" in name or name.startswith((_PACKAGE, _COURSE)) or name.endswith(_WRAPPERS)


@lru_cache(maxsize=4096)
def is_callers(filename: str) -> bool:
    """Whether the caller wrote this file, or cell: it is neither torch's, ringzero's nor another library's."""
    name = filename.replace("\\", "/")
    return not is_package_code(name) and not any(where in name for where in _INSTALLED)


def is_collective(filename: str) -> bool:
    """Whether the code of this file runs ringzero's own collectives: an error there is one of communication."""
    return filename.replace("\\", "/").startswith(f"{_PACKAGE}collectives/")


def is_plumbing(filename: str) -> bool:
    """Whether frames of this file are left out of tracebacks: they hide what the caller did."""
    parts = filename.replace("\\", "/")
    return parts.startswith(_HIDDEN) or "/torch/distributed/" in parts or parts.startswith("<frozen")


def _chain(report):
    seen = []
    while report is not None and report not in seen:
        seen.append(report)
        report = report.__cause__ or report.__context__
    return seen
