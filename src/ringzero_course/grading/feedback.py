"""The page that a student gets back: the score and what to look at on top, then the notebook.

``ForTheStudent`` prepares the notebook, ``FeedbackPage`` writes it with the template ``feedback_page``. Nothing of
hidden tests is on it (``withheld``), no script runs on it, and it loads nothing.
"""

import math
import re
from dataclasses import dataclass
from pathlib import Path

from nbconvert.exporters import HTMLExporter
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from pygments.formatters import HtmlFormatter
from traitlets import List
from traitlets.config import Config

from ringzero_course.grading import harmless, readable, verdict, withheld

TEMPLATES = Path(__file__).parent / "templates"
HIDDEN_CODE = "# (hidden tests)"
FULL, SOME, NONE, NOT_STARTED, WAITS = "full", "some", "none", "not started", "waits"
_GRADERS_OWN = ("NotRun", "KernelDied", "TimeLimit", "NoScore")  # errors that ``execute`` adds
_WHAT_HAPPENED = {  # beside the score, where a notebook did not run to its end
    verdict.LIMIT: "Something took too long, or printed without end, and was stopped. Other cells keep their points.",
    verdict.TAMPERING: "Your notebook told the grader something that no lab asks for. Your instructor looks at it.",
    verdict.INVALID: "Nothing could be run. Put it right and hand it in again, or ask your instructor.",
    verdict.GRADER: "This is our fault, not yours. It will be graded again.",
}


@dataclass(frozen=True)
class Part:
    """One graded part: where it stands in the notebook, its points, and the first reason why some are missing."""

    place: str
    title: str
    name: str
    score: float
    possible: float
    state: str
    reason: str


class FeedbackPage(HTMLExporter):
    """The notebook as this page, whatever nbgrader's settings say of a template."""

    @property
    def default_config(self):
        own = Config({"FeedbackPage": {"template_name": "feedback_page", "extra_template_basedirs": [str(TEMPLATES)]}})
        own.merge(super().default_config)
        return own


class ForTheStudent(NbGraderPreprocessor):
    """For ``GenerateFeedback.preprocessors``, after ``GetGrades``."""

    display_data_priority: List = List([], help="Not used; nbconvert's HTML exporter sets it for all.").tag(config=True)

    def preprocess(self, nb, resources):
        secret, (waiting, unchanged) = withheld.of(nb.cells), _by_hand(resources["nbgrader"])
        parts, fallen, title = [], [], ""
        for number, cell in enumerate(nb.cells):
            if cell.cell_type == "markdown" and (heading := re.search(r"^#{1,4} +(.+)$", cell.source, re.MULTILINE)):
                title = _plain(heading[1])
            cell.metadata["feedback"] = {"place": f"cell-{number}", "tables": [], "part": None, "test": False}
            shown = cell.metadata["feedback"]  # a copy of what was put there
            shown["test"] = withheld.is_test(cell)
            shown["tables"] = [secret.table(table) for table in withheld.read_tables(cell)] if shown["test"] else []
            _take_out(cell, secret, shown["test"])
            cell.source = readable.for_a_page(cell)
            if utils.is_grade(cell) or utils.is_task(cell):
                name = cell.metadata.nbgrader.grade_id
                shown["part"] = _part(cell, title, name in waiting, name in unchanged and not shown["test"])
                parts.append(shown["part"])
            elif error := _error(cell):
                fallen.append((shown["place"], title, error))
        found = verdict.read(resources["metadata"]["path"]) or verdict.Verdict(verdict.OK)
        resources["feedback"] = {
            "title": _title(nb, resources),
            "score": _number(sum(part.score for part in parts)),
            "possible": _number(sum(part.possible for part in parts)),
            "headline": headline(parts, found.kind),
            "sentences": [*_of_verdict(found, secret), *sentences(parts, resources["nbgrader"])],
            "parts": parts,
            "fallen": [] if parts and all(part.state in (NOT_STARTED, WAITS) for part in parts) else fallen,
            "tone": _tone(parts, found.kind),
            "code_light": HtmlFormatter(style="default").get_style_defs(".highlight"),
            "code_dark": HtmlFormatter(style="github-dark").get_style_defs(".highlight"),
            "number": _number,
        }
        return nb, resources


def headline(parts: list[Part], kind: str) -> str:
    """What became of the notebook, in a few words."""
    checked = [part for part in parts if part.state != WAITS]
    if kind == verdict.GRADER:
        return "Not graded yet"
    if kind == verdict.INVALID:
        return "Could not be graded"
    if not checked:
        return "Waits for your instructor" if parts else "Nothing to grade"
    if all(part.state == NOT_STARTED for part in checked):
        return "Not started"
    if all(part.state == FULL for part in checked):
        return "Every check passed"
    if not sum(part.score for part in checked):
        return "No check passed yet"
    return "Some checks did not pass"


def sentences(parts, nbgrader):
    """What there is to say about the score: how many points of those that are decided, and what is left to do."""
    decided = [part for part in parts if part.state != WAITS]
    if decided and len(decided) < len(parts):
        score, possible = sum(part.score for part in decided), sum(part.possible for part in decided)
        yield f"{_number(score)} of {_number(possible)} points from the parts that are graded so far."
    if missing := [part for part in decided if part.state in (SOME, NONE)]:
        yield f"Look at {_listed([part.name for part in missing])}."
    if not_started := [part for part in decided if part.state == NOT_STARTED]:
        yield f"Not written yet: {_listed([part.name for part in not_started])}."
    if waiting := [part for part in parts if part.state == WAITS]:
        points = sum(part.possible for part in waiting)
        names = _listed([part.name for part in waiting])
        yield f"Your instructor still grades {names}, for up to {_number(points)} more points."
    if nbgrader.get("late_penalty"):
        yield f"{_number(nbgrader['late_penalty'])} points are taken off because it was late."


def _of_verdict(found, secret):
    """What the grader has to say that is not in a table or beside a cell."""
    notes = [found.reason] if found.kind in (verdict.INVALID, verdict.GRADER) else []
    notes += [note for note in found.notes if not note.startswith("cell [")]
    yield from (secret.without(note) for note in dict.fromkeys(notes) if note)
    if found.kind in _WHAT_HAPPENED:
        yield _WHAT_HAPPENED[found.kind]


def _tone(parts, kind):
    if kind in (verdict.INVALID, verdict.GRADER):
        return "bad"
    states = {part.state for part in parts} - {WAITS}
    return "good" if states == {FULL} else "idle" if states <= {NOT_STARTED} else "open"


def _title(nb, resources):
    """The notebook's first heading."""
    for cell in nb.cells:
        if cell.cell_type == "markdown" and (heading := re.search(r"^# +(.+)$", cell.source, re.MULTILINE)):
            return _plain(heading[1])
    return resources["nbgrader"]["assignment"]


def _part(cell, title, waits, unchanged):
    entry = cell.metadata.nbgrader
    score, possible = float(entry.get("score") or 0), float(entry.get("points") or 0)
    tables = cell.metadata["feedback"]["tables"]
    reason = _first_reason(cell, tables)
    if waits:
        state, reason = WAITS, "waits for your instructor"
    elif score >= possible:
        state, reason = FULL, ""
    elif unchanged or (score == 0 and _is_not_written(cell, tables)):
        state, reason = NOT_STARTED, "not written yet"
    else:
        state = SOME if score else NONE
    name = tables[0].name if tables else entry.grade_id.removeprefix("test_")
    return Part(cell.metadata["feedback"]["place"], title, name, score, possible, state, reason)


def _first_reason(cell, tables):
    for row in (row for table in tables for row in table.rows if not row.holds):
        return f"{row.claim}: {row.reason}" if row.reason else row.claim
    return _error(cell)


def _is_not_written(cell, tables):
    """Whether the function that the cell tests is still as it was handed out."""
    reasons = [row.reason for table in tables for row in table.rows if not row.holds]
    if reasons:
        return all(reason.endswith(" is not written yet") or reason.startswith("as for ") for reason in reasons)
    return _error(cell).startswith(NotImplementedError.__name__)


def _error(cell):
    """The first line of the first error that the cell shows; "" if there is none. The cell itself shows all lines."""
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            said = output.evalue.partition("\n")[0]
            return said if output.ename in _GRADERS_OWN else f"{output.ename}: {said}".rstrip(": ")
    return ""


def _by_hand(of):
    """The names of the cells that wait for a person's grade, and of those with 0 points that no person gave."""
    with Gradebook(of["db_url"]) as gradebook:
        notebook = gradebook.find_submission_notebook(of["notebook"], of["assignment"], of["student"])
        waiting = {grade.name for grade in notebook.grades if grade.needs_manual_grade}
        return waiting, {
            grade.name for grade in notebook.grades if grade.auto_score == 0 and grade.manual_score is None
        }


def _take_out(cell, secret, is_test):
    """Take out of the cell what the page shows in another form, and what is hidden."""
    tests_hidden = is_test and withheld.SOURCE.search(cell.source) is not None
    cell.source = withheld.SOURCE.sub(HIDDEN_CODE, cell.source)
    kept = []
    for output in cell.get("outputs", []):
        is_number = is_test and output.output_type == "execute_result"  # the points
        # Hidden tests called the student's functions too, which may print their arguments.
        printed = tests_hidden and output.output_type == "stream"
        if is_number or printed or (is_test and withheld.read_table(output) is not None):
            continue
        if not is_test:
            harmless.keep_what_is_safe(output, drawn=True)
        withheld.redact(output, secret)
        kept.append(output)
    if cell.cell_type == "code":
        cell.outputs = kept


def _plain(heading):
    """A heading without the marks of its text."""
    return re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip()


def _listed(names):
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _number(points):
    """Points as a person writes them: 3, 2.5, 0.67."""
    return f"{points:.0f}" if math.isclose(points, round(points), abs_tol=0.005) else f"{points:.2f}".rstrip("0")
