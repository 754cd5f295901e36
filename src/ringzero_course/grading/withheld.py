"""What a student must not see of hidden tests, taken out of a graded notebook: their text, and their arguments."""

import builtins
import html
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from nbgrader import utils

METADATA = "ringzero_check"  # where the display of a check's table has it as plain data: ``ringzero_course.lab.table``
SOURCE = re.compile(r"^[^\n]*BEGIN HIDDEN TESTS.*?(?:END HIDDEN TESTS[^\n]*|\Z)", re.DOTALL | re.MULTILINE)
ANSI = re.compile(r"\x1b\[[0-9;]*m")
# What a student's error says, its kind and its lines among it, may be what the arguments were.
_RAISED = re.compile(r"(rank \d+ raised )(.*)", re.DOTALL)
_PLACE = re.compile(r" · cell \[\d{1,3}\], line \d{1,4}\b")
_ECHO = re.compile(r"^as for “(.*)”$", re.DOTALL)
LINE, CASE = "(hidden test)", "a hidden case"


@dataclass(frozen=True)
class Row:
    """A claim of a check, as ``ringzero_course.lab.table`` has it."""

    claim: str
    holds: bool
    reason: str
    points: float
    possible: float
    hidden: bool


@dataclass(frozen=True)
class Table:
    """What a check showed. ``printed``: whether its ranks printed anything."""

    name: str
    rows: tuple[Row, ...]
    points: float
    possible: float
    printed: bool
    ran: str
    shown_cases: tuple[str, ...]
    hidden_cases: tuple[str, ...]


@dataclass(frozen=True)
class Withheld:
    """``lines`` of hidden tests; calls in words: those only of ``hidden`` tests, and those that students see."""

    lines: frozenset[str]
    hidden: frozenset[str]
    shown: frozenset[str]

    def without(self, text: str) -> str:
        """``text`` without what is hidden, whether coloured (a traceback) or escaped (HTML)."""
        lines = text.split("\n")
        for place, line in enumerate(lines):
            plain = html.unescape(ANSI.sub("", line))
            if any(hidden in plain for hidden in self.lines):
                lines[place] = LINE
        return self._without_cases("\n".join(lines))

    def _without_cases(self, text):
        if not self.hidden:
            return text
        # The longest first: one call in words may begin as another does.
        cases = sorted(self.hidden | self.shown, key=len, reverse=True)
        either = "|".join(re.escape(form) for case in cases for form in dict.fromkeys((case, html.escape(case))))
        return re.sub(rf"(with )?({either})", self._in_place_of, text)

    def _in_place_of(self, found):
        if html.unescape(found[2]) not in self.hidden:
            return found[0]
        return f"in {CASE}" if found[1] else CASE

    def table(self, table: Table) -> Table:
        """The table as a student may see it: hidden claims have numbers in place of their texts."""
        numbers = {row.claim: f"hidden check {i + 1}" for i, row in enumerate(row for row in table.rows if row.hidden)}
        seen = {row.claim for row in table.rows if not row.hidden}
        rows, number = [], 0
        for row in table.rows:
            reason = self.without(row.reason)
            if (echo := _ECHO.match(row.reason)) and echo[1] not in seen:
                reason = f"as for {numbers.get(echo[1], CASE)}"
            number += row.hidden
            if row.hidden:
                row = replace(row, claim=f"hidden check {number}")
                reason = _RAISED.sub(_without_words, reason)
            rows.append(replace(row, reason=reason))
        # On how many ranks it ran says with which numbers of ranks hidden tests call.
        return replace(table, rows=tuple(rows), ran="" if table.hidden_cases else table.ran)


def _without_words(found):
    """Of an error, its kind if it is one of Python's, and the first of its places in the notebook."""
    kind, place = re.match(r"\w*", found[2])[0], _PLACE.search(found[2])
    known = isinstance(getattr(builtins, kind, None), type)
    return found[1] + (kind if known else "an error") + (place[0] if place else "")


def is_test(cell: Any) -> bool:
    """Whether a cell is one of the instructor's tests."""
    return cell.cell_type == "code" and utils.is_grade(cell) and not utils.is_solution(cell)


def read_tables(cell: Any) -> list[Table]:
    """The tables of checks that a cell shows."""
    return [table for output in cell.get("outputs", []) if (table := read_table(output)) is not None]


def read_table(output: Any) -> Table | None:
    """The table in this output, or None. A student's cell may have written anything there."""
    data = output.get("metadata", {}).get(METADATA)
    try:
        rows = tuple(
            Row(str(row["claim"]), row["holds"] is True, str(row["reason"]), float(row["points"]),
                float(row["possible"]), row["hidden"] is True)
            for row in data["rows"]
        )  # fmt: skip
        cases = ([str(case) for case in data[which]] for which in ("shown_cases", "hidden_cases"))
        points, possible = float(data["points"]), float(data["possible"])
        return Table(
            str(data["function"]), rows, points, possible, data["printed"] is True, str(data["ran"]), *map(tuple, cases)
        )
    except (KeyError, TypeError, ValueError):
        return None


def of(cells: Iterable) -> Withheld:
    """What is to be withheld of a notebook with these cells. What other cells than tests show, a student wrote."""
    cells = list(cells)
    lines = {line for cell in cells if is_test(cell) for line in _hidden_lines(cell.source)}
    tables = [table for cell in cells if is_test(cell) for table in read_tables(cell)]
    shown = {case for table in tables for case in table.shown_cases}
    hidden = {case for table in tables for case in table.hidden_cases if len(case) > 3}
    return Withheld(frozenset(lines), frozenset(hidden - shown), frozenset(shown))


def _hidden_lines(source):
    """The lines of hidden tests that would give something away."""
    for region in SOURCE.findall(source):
        yield from (line.strip() for line in region.splitlines() if len(line.strip()) > 8)


def redact(output: Any, withheld: Withheld) -> None:
    """Take what is hidden out of an output of a cell."""
    if output.output_type == "stream":
        output.text = withheld.without(output.text)
    elif output.output_type == "error":
        output.evalue = withheld.without(output.evalue)
        output.traceback = [withheld.without(part) for part in output.traceback]
    else:
        for kind, value in output.get("data", {}).items():
            if isinstance(value, str):
                output.data[kind] = withheld.without(value)
        output.get("metadata", {}).pop(METADATA, None)
