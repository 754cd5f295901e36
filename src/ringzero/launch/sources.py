"""The caller's own lines, in a rank's traceback.

A function typed into a notebook has no file: IPython keeps its source in ``linecache``.
``collect`` gathers those sources in the notebook, ``install`` puts them into a rank's
``linecache``, and ``format_error`` prints a traceback that starts at the caller's code.
"""

import linecache
import sys
import traceback
from functools import lru_cache

_PACKAGE = __file__.replace("\\", "/").rsplit("/launch/", 1)[0] + "/"
BODY_OF = "body of "  # before the name of a cell whose body runs on ranks (ringzero.lab.magic)
_labels = {}  # file name -> what a reader calls it, such as "cell [7]"


def collect():
    """``{filename: [label, source text]}`` of every notebook cell run so far in this process."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return {
        name: [_cell_label(name.removeprefix(BODY_OF), numbers), "".join(entry[2])]
        for name, entry in list(linecache.cache.items())
        if len(entry) == 4 and ("ipykernel" in name or "<ipython" in name)
    }


def _cell_label(name, numbers):
    return f"cell [{numbers[name]}]" if name in numbers else name


def install(sources):
    """Make the cells of ``collect`` known to this process's tracebacks."""
    for name, (label, text) in sources.items():
        # A modification time of None tells linecache never to look for the file.
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        _labels[name] = label


def format_error(error):
    """The traceback of ``error`` without ringzero's and torch's own frames, cells named as the reader knows them."""
    report = traceback.TracebackException.from_exception(error)
    for link in _chain(report):
        own = [frame for frame in link.stack if not is_plumbing(frame.filename)]
        link.stack = traceback.StackSummary.from_list(
            traceback.FrameSummary(label(frame.filename), frame.lineno, frame.name, line=frame.line)
            for frame in own or link.stack[-1:]
        )
    return "".join(report.format()).rstrip("\n")


def label(filename):
    return _labels.get(filename, filename)


def place(filename, line):
    """Where a line of the caller's is, as a reader says it: "cell 7 line 4", "train.py line 12"."""
    return place_of(label(filename), line)


def place_of(name, line):
    name = name.strip('"').rsplit("/", 1)[-1]
    return f"{name.replace('[', '').replace(']', '') if name.startswith('cell [') else name} line {line}"


@lru_cache(maxsize=4096)
def is_package_code(filename):
    """Whether the code of this file is torch's or ringzero's own rather than the caller's."""
    name = filename.replace("\\", "/")
    return is_plumbing(name) or "/torch/" in name or name.startswith(_PACKAGE) or "typing_extensions" in name


def is_plumbing(filename):
    """Whether frames of this file hide rather than show what the caller did."""
    parts = filename.replace("\\", "/")
    own = parts.startswith((_PACKAGE + "launch/", _PACKAGE + "lab/"))
    return own or "/torch/distributed/" in parts or parts.startswith("<frozen")


def _chain(report):
    seen = []
    while report is not None and report not in seen:
        seen.append(report)
        report = report.__cause__ or report.__context__
    return seen
