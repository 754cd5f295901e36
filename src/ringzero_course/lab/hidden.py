"""What of a test cell is hidden: nbgrader takes the lines between two marks out of what it hands out.

A check marks in its table which claims and cases were declared there, so that a feedback page can leave them out.
"""

import linecache
import sys

secret = ""  # the instructor's, in a sealed course: what hidden cases are drawn from

BEGIN, END = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"


def is_declared_hidden() -> bool:
    """Whether the cell's line that led to this call, outside of ringzero and the course, stands between the marks."""
    frame = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] in ("ringzero", "ringzero_course"):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and is_hidden_line(linecache.getlines(frame.f_code.co_filename), frame.f_lineno)


def is_hidden_line(lines: list[str], number: int) -> bool:
    """Whether line ``number``, from 1, of the text stands between the marks."""
    hidden = False
    for line in lines[:number]:
        if BEGIN in line:
            hidden = True
        elif END in line:
            hidden = False
    return hidden
