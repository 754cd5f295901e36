"""What came out of a submission's cells: what nbgrader would score wrongly is changed, and what it says is noted."""

import math
import re

from nbformat.v4 import new_output
from nbgrader import utils

from ringzero_course.boxes.faults import GraderFault
from ringzero_course.grading import verdict, withheld

SIGNS = {  # words in the reasons of a check's table, or in its error, that mean more than a wrong result
    verdict.LIMIT: re.compile(r"no end after \d+ s: .*|\S+ cannot be had .*: it did not answer in \d+ s"),
    verdict.STUDENT: re.compile(r"rank \d+ (raised|was ended by|ended with exit|was killed) .*"),
    verdict.TAMPERING: re.compile(r"\S+ cannot be had: the notebook's kernel gave something else for it .*"),
}


def settle(nb):
    """Change outputs that nbgrader would score wrongly; return what was found, as ``[(kind, sentence)]``.

    nbgrader gives full marks to a test cell that did not run, or that ended in something that is no number, and
    none to one with a line of library noise on stderr.
    """
    notes = []
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        where = f"cell [{cell.execution_count or '-'}]"
        error = next((output for output in cell.outputs if output.output_type == "error"), None)
        if error is not None and utils.is_grade(cell) and error.ename == GraderFault.__name__:
            notes.append((verdict.GRADER, f"{where}: {error.evalue}"))
        elif error is not None and error.ename not in ("NotRun", "KernelDied", "TimeLimit"):
            said = "" if utils.is_grade(cell) else error.evalue  # a test's message may tell what is hidden
            first = f"{error.ename}: {said}".splitlines()[0].rstrip(": ")
            notes.append((verdict.STUDENT, f"{where}: {_shortened(first)}"))
        if not utils.is_grade(cell) or utils.is_solution(cell):
            continue
        for output in cell.outputs:
            if output.output_type == "stream":
                output.name = "stdout"
        notes += [(kind, f"{where}: {sign}") for kind, sign in _signs(cell)]
        if error is None and not _score_is_number(cell):
            add_error(cell, "NoScore", "The test cell did not end in one number of points, so it scores 0.")
            notes.append((verdict.STUDENT, f"{where}: {cell.metadata.nbgrader.grade_id} did not end in a number"))
        if any(output.output_type == "error" for output in cell.outputs):
            _withdraw_results(cell)
    return notes


def _signs(cell):
    """What a test cell says of hangs, of ranks that failed and of a kernel that lied, each once.

    Not what ranks printed, which is in its outputs, too: a student may print anything.
    """
    texts = [row.reason for table in withheld.read_tables(cell) for row in table.rows]
    texts += [output.evalue for output in cell.outputs if output.output_type == "error"]
    for kind, sign in SIGNS.items():
        found = next(filter(None, map(sign.search, texts)), None)
        if found:
            yield kind, _shortened(found[0])


def _shortened(text, longest=200):
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _score_is_number(cell):
    results = [output for output in cell.outputs if output.output_type == "execute_result"]
    try:
        (result,) = results  # nbgrader scores the first result, which a student's code may have printed
        score = float(result.data["text/plain"])
    except (KeyError, ValueError, TypeError):
        return False
    return math.isfinite(score) and 0 <= score <= float(cell.metadata.nbgrader.points)


def _withdraw_results(cell):
    """nbgrader scores a result even if an error follows it. Keep the result visible, but not as a score."""
    cell.outputs = [
        new_output("display_data", data=output.data) if output.output_type == "execute_result" else output
        for output in cell.outputs
    ]


def add_error(cell, name, sentence):
    cell.outputs.append(new_output("error", ename=name, evalue=sentence, traceback=[sentence]))


def verdict_of(notes, seconds):
    if not notes:
        return verdict.Verdict(verdict.OK, seconds=seconds)
    kind, reason = max(notes, key=lambda note: verdict.KINDS.index(note[0]))
    return verdict.Verdict(kind, reason, [sentence for _, sentence in notes], seconds)
