"""What a student who makes one of the wrong solutions' mistakes reads, and after how many seconds.

Each wrong solution takes the place of the reference's cells in a live kernel, as a student changes a cell, and then the
test cell runs that must catch it. The sentence is the first reason of its table.
"""

import csv
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from ringzero_course.authoring import catches, live_notebook, submission
from ringzero_course.grading import build_labs, course

# No student has written these: files of libraries, and names of functions inside them. Students write in cells.
_LIBRARY = re.compile(
    r"site-packages|dist-packages|/lib/python|third_party|\w+\.(?:py|cc|cpp|h|hpp)\b|<frozen|<string>|check_headers"
    r"|Exception raised from|_ZN\w+"
)
EVERY_POINT = "nothing: it got every point"


@dataclass(frozen=True)
class Said:
    """A wrong solution, the ``mistake`` in it, the ``sentence`` its table shows first, and the ``seconds`` to that.

    ``outcomes`` are those of all claims of its table.
    """

    lab: str
    name: str
    mistake: str
    sentence: str
    seconds: float
    outcomes: tuple[catches.Outcome, ...] = ()


def library_line(text: str) -> str | None:
    """The first word in ``text`` that names a library's file or its inner function; None if there is none."""
    found = _LIBRARY.search(text)
    return found[0] if found else None


def reasons(shown: str) -> list[str]:
    """The reasons under the claims that do not hold, of what a test cell shows as text."""
    lines = shown.splitlines()
    return [lines[place + 1].strip() for place, line in enumerate(lines) if line.startswith("  FAIL")]


def typical() -> dict[tuple[str, str], str]:
    """``{(lab, name): mistake}`` of the wrong solutions that show typical mistakes, in a few words each."""
    with open(course.repository() / "tests" / "mutants" / "typical.csv", newline="") as file:
        return {(row["lab"], row["name"]): row["mistake"] for row in csv.DictReader(file)}


def said(lab: str, wrong: Sequence[submission.WrongSolution], times: int = 1, secret: int = 0) -> Iterator[Said]:
    """Run the ``wrong`` solutions of ``lab`` in turn, ``times`` each, and yield what their tables say.

    The seconds are the median of those times, from the start of the test cell to its end. ``secret`` is a
    number by which hidden cases are drawn; 0 for the lab's own.
    """
    if not wrong:
        return
    seconds: dict[str, list[float]] = {each.name: [] for each in wrong}
    with live_notebook.kernel_of(build_labs.source_notebook(lab, secret=secret)) as kernel:
        kernel.run_all()
        for turn in range(times):
            for each in wrong:
                with kernel.changed(each.replacements, each.fails):
                    start = time.monotonic()
                    cell = kernel.run(each.caught_by)
                    seconds[each.name].append(time.monotonic() - start)
                if turn == times - 1:
                    text = live_notebook.text_of(cell)
                    sentence = [*reasons(text), EVERY_POINT][0]
                    outcomes = tuple(catches.outcomes(text))
                    mistake = " ".join(each.reason.split())
                    yield Said(lab, each.name, mistake, sentence, statistics.median(seconds[each.name]), outcomes)


def report(row: Said) -> str:
    """A row as lines of text."""
    found = library_line(row.sentence)
    lines = [f"{row.lab}  {row.name}  {row.seconds:.1f} s"]
    lines += [f"    mistake  {row.mistake}", f"    says     {row.sentence}"]
    return "\n".join([*lines, *([f"    NAMES A LIBRARY'S LINE: {found}"] if found else [])])


def as_data(row: Said) -> dict:
    """A row as plain data without the outcomes, the seconds rounded to hundredths."""
    data = asdict(row) | {"seconds": round(row.seconds, 2)}
    del data["outcomes"]
    return data
