"""How each part of a lab went in a class: ``ringzero grades LAB --items``, and the section "Parts" of the report."""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nbformat.v4

from ringzero_course.grading import verdict, withheld

FEWEST = 3  # students, below which a correlation says nothing
EXPLAINED = (
    '"with the rest" is the correlation of a part\'s points with the points of all other parts, from -1 to 1. '
    "Below 0.2, or without a number, the part does not tell strong students from weak ones: look at it."
)


@dataclass(frozen=True)
class Claim:
    """One claim of a check: how many of the students whose check showed a table did not meet it."""

    text: str
    failed: int
    students: int


@dataclass(frozen=True)
class Part:
    """A graded part: ``possible`` points, their ``mean``, the share of students with ``full`` marks, and the
    correlation with the rest of the score; None where one of the two is the same for all."""

    name: str
    possible: float
    students: int
    mean: float
    full: float
    with_the_rest: float | None
    claims: tuple[Claim, ...] = ()


def parts(graded: Mapping[str, Any], tables: Mapping[str, Mapping[str, Sequence[withheld.Table]]]) -> list[Part]:
    """The parts, in the lab's order, of the ``Grade`` of each student. What waits for a person is left out.

    ``tables`` are those that the student's test cells show: ``{student: {grade_id: tables}}``.
    """
    counted = {name: grade for name, grade in graded.items() if grade.verdict.kind not in verdict.NO_SCORE}
    found = []
    for part in dict.fromkeys(part for grade in counted.values() for part in grade.cells):
        # A part's points, and the others', of each student who has both.
        points, rest = [], []
        for grade in counted.values():
            if part in grade.cells and part not in grade.manual:
                points.append(grade.cells[part][0])
                rest.append(sum(s for name, (s, _) in grade.cells.items() if name != part and name not in grade.manual))
        if not points:
            continue
        possible = next(grade.cells[part][1] for grade in counted.values() if part in grade.cells)
        shown = [tables[name][part] for name in counted if tables.get(name, {}).get(part)]
        claims = _claims([table for of_student in shown for table in of_student])
        full = sum(score >= possible for score in points) / len(points)
        mean = sum(points) / len(points)
        found.append(Part(part, possible, len(points), mean, full, correlation(points, rest), claims))
    return found


def _claims(tables):
    counts: dict[str, list[int]] = {}  # text -> [failed, all]
    for table in tables:
        for row in table.rows:
            text = f"{row.claim} (hidden)" if row.hidden else row.claim
            count = counts.setdefault(text, [0, 0])
            count[0] += not row.holds
            count[1] += 1
    return tuple(Claim(text, *count) for text, count in counts.items())


def correlation(ones: Sequence[float], others: Sequence[float]) -> float | None:
    """Pearson's; None of fewer than ``FEWEST`` pairs, or where one side is the same in all."""
    if len(ones) < FEWEST:
        return None
    one, other = sum(ones) / len(ones), sum(others) / len(others)
    both = sum((a - one) * (b - other) for a, b in zip(ones, others, strict=True))
    spread = math.sqrt(sum((a - one) ** 2 for a in ones) * sum((b - other) ** 2 for b in others))
    return both / spread if spread > 1e-12 else None


def tables_of(root: Path, lab: str, students: Sequence[str]) -> dict[str, dict[str, list[withheld.Table]]]:
    """What the autograded notebooks in the course directory ``root`` show of checks."""
    found: dict[str, dict[str, list[withheld.Table]]] = {}
    for student in students:
        try:
            text = (root / "autograded" / student / lab / f"{lab}.ipynb").read_text()
        except OSError:
            continue
        cells = nbformat.v4.reads(text).cells  # without a validation, which takes longer than all the rest
        secret = withheld.of(cells)
        found[student] = {
            cell.metadata.nbgrader.grade_id: [_with_reasons_of(secret, table) for table in withheld.read_tables(cell)]
            for cell in cells
            if withheld.is_test(cell)
        }
    return found


def _with_reasons_of(secret, table):
    """All claims by their names, with the reasons that a student sees: those of known mistakes are kept so, too."""
    seen = secret.table(table).rows
    return replace(table, rows=tuple(replace(row, reason=s.reason) for row, s in zip(table.rows, seen, strict=True)))


def as_text(some: Sequence[Part]) -> str:
    """The parts as a table for a terminal, and below each the claims that somebody did not meet."""
    if not some:
        return "Nobody has a score yet."
    width = max(len("part"), *(len(part.name) for part in some))
    lines = [f"{'part':{width}}  out of   mean   full  with the rest"]
    for part in some:
        numbers = f"{part.possible:6g}  {part.mean:5.2f}  {part.full:4.0%}  {_shown(part.with_the_rest):>13}"
        lines.append(f"{part.name:{width}}  {numbers}")
        lines += [f"    {text}" for text in _what_was_not_met(part)]
    return "\n".join([*lines, EXPLAINED])


def as_html(some: Sequence[Part]) -> str:
    """The same as a section of a page."""
    if not some:
        return "<p>Nobody has a score yet.</p>"
    names = ("part", "out of", "mean", "full marks", "with the rest", "what was not met")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = []
    for part in some:
        failed = map(html.escape, _what_was_not_met(part))
        numbers = (f"{part.possible:g}", f"{part.mean:.2f}", f"{part.full:.0%}", _shown(part.with_the_rest))
        shown = "".join(f'<td class="n">{number}</td>' for number in numbers)
        rows.append(f"<tr><td>{html.escape(part.name)}</td>{shown}<td>{'<br>'.join(failed)}</td></tr>")
    table = f'<div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>'
    return f"{table}<p>{html.escape(EXPLAINED, quote=False)}</p>"


def _what_was_not_met(part):
    yield from (f"{each.failed} of {each.students} fail: {each.text}" for each in part.claims if each.failed)


def _shown(number):
    return "–" if number is None else f"{number:.2f}"
