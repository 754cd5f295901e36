"""The class as one HTML page that needs no other file: who needs a look and why, then everybody's points, then how
each part went."""

import html
from collections.abc import Sequence
from typing import Any

from ringzero_course.grading import items, needs

_STYLE = """body{font:16px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color-scheme:light dark}
table{border-collapse:collapse}th,td{padding:.2em .7em;text-align:left;border-bottom:1px solid #8886;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}.scroll{overflow-x:auto}"""


def page(lab: str, graded: dict, handed_in: set[str], parts: Sequence[items.Part] = ()) -> str:
    """The page as text."""
    look = needs.of_class(graded, handed_in)
    cells = list(dict.fromkeys(name for grade in graded.values() for name in grade.cells))
    rows = [
        _row([_shown(student, graded), "<br>".join(html.escape(why) for why in reasons)])
        for student, reasons in look.items()
    ]
    needed = _table(["student", "why"], rows) if look else "<p>Nobody needs a look.</p>"
    rows = []
    for student in sorted(graded):
        grade = graded[student]
        points = [_points(grade, name) for name in cells]
        final = f"{grade.score:g} of {grade.largest:g}" + ("" if needs.is_final(grade) else " so far")
        rows.append(
            _row([_shown(student, graded), *points, final, html.escape(grade.verdict.kind)], numbers=len(cells))
        )
    scores = _table(["student", *map(html.escape, cells), "score", "verdict"], rows)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(lab)}</title>'
        f"<style>{_STYLE}</style><h1>{html.escape(lab)}</h1>"
        f"<h2>Who needs a look ({len(look)} of {len(handed_in | graded.keys())})</h2>{needed}"
        f"<h2>Points</h2>{scores}<p>* waits for a person's grade and counts 0 so far.</p>"
        f"<h2>Parts</h2>{items.as_html(parts)}</html>\n"
    )


def _shown(student: str, graded: dict) -> str:
    name = graded[student].name if student in graded else ""
    return html.escape(f"{student} ({name})" if name else student)


def _points(grade: Any, name: str) -> str:
    if name not in grade.cells:
        return ""
    score, largest = grade.cells[name]
    return f"{score:g}/{largest:g}" + ("*" if name in grade.manual else "")


def _row(cells: list[str], numbers: int = 0) -> str:
    shown = [f'<td class="n">{cell}</td>' if 1 <= i <= numbers else f"<td>{cell}</td>" for i, cell in enumerate(cells)]
    return f"<tr>{''.join(shown)}</tr>"


def _table(head: list[str], rows: list[str]) -> str:
    names = "".join(f'<th scope="col">{name}</th>' for name in head)
    return f'<div class="scroll"><table><tr>{names}</tr>{"".join(rows)}</table></div>'
