"""Whether a submission is graded again, and what is said where it was.

``last_grading`` keeps on what a grade depends. What a regrade changed is told once, also where a run ended between the
grade and the telling; then the student's feedback page is renewed.
"""

import contextlib
import copy
import dataclasses
import re
from pathlib import Path

import nbformat
import nbgrader.converters
from nbformat.v4 import new_notebook
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.preprocessors import AssignLatePenalties

from ringzero_course.grading import last_grading, verdict
from ringzero_course.grading.fingerprint import differing, fingerprint
from ringzero_course.grading.known_settings import settings_of
from ringzero_course.grading.last_grading import LastGrading, Outcome
from ringzero_course.grading.read_submission import id_of
from ringzero_course.grading.restore import sources_of
from ringzero_course.grading.validate import TABLE


class RemembersGrades(nbgrader.converters.Autograde):
    """The part of ``CourseAutograde`` that knows what was graded before. ``_steps`` are those of grading."""

    def _why_again(self, assignment_id, student_id):
        """Why a submission is to be graded that was looked at before; "" where its grade stands."""
        found = verdict.read(self._format_dest(assignment_id, student_id))
        if found is None:
            return "its grading was cut short"
        if found.kind == verdict.GRADER:
            return str(found)
        if self.force:
            return "you asked for it"
        last = last_grading.read(self._last(assignment_id, student_id))
        if last is None:
            return "nothing says on what its grade depends"
        changed = differing(last.fingerprint, self._fingerprint(assignment_id, student_id))
        return f"{' and '.join(changed)} changed" if changed else ""

    def _last(self, assignment_id, student_id):
        return last_grading.path_of(Path(self.coursedir.root), student_id, assignment_id)

    def _fingerprint(self, assignment_id, student_id):
        parameters = [(getattr(step, "__name__", type(step).__name__), settings_of(step)) for step in self._steps]
        submitted = self.coursedir.format_path(self.coursedir.submitted_directory, student_id, assignment_id)
        return fingerprint(Path(submitted), self._release(assignment_id), parameters)

    def _release(self, assignment_id):
        """The cells of the instructor's notebooks, as plain data."""
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            return [
                [notebook.name, cell.source, dict(cell.metadata)]
                for notebook in gradebook.find_assignment(assignment_id).notebooks
                for cell in sources_of(notebook)
            ]

    def _renew_lateness(self, assignment_id, student_id):
        """Have a new time of submission, or a new date when the lab is due, count for a grade that stands."""
        self._set_timestamp(assignment_id, student_id)
        penalties = AssignLatePenalties(parent=self)
        names = {"assignment": assignment_id, "student": student_id, "db_url": self.coursedir.db_url}
        for notebook in self._expected(assignment_id):
            with contextlib.suppress(MissingEntry):
                penalties.preprocess(new_notebook(), {"nbgrader": {**names, "notebook": notebook}})

    def _set_timestamp(self, assignment_id, student_id):
        """When it was handed in; unknown without a ``timestamp.txt``, even if an earlier submission had one."""
        source = self.coursedir.format_path(self.coursedir.submitted_directory, student_id, assignment_id)
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook, contextlib.suppress(MissingEntry):
            submission = gradebook.find_submission(assignment_id, student_id)
            submission.timestamp = self.coursedir.get_existing_timestamp(source)
            gradebook.db.commit()

    def _remember(self, assignment_id, student_id, found):
        """Write what this grade depends on, and what it was before."""
        path = self._last(assignment_id, student_id)
        previous, now = last_grading.read(path), self._fingerprint(assignment_id, student_id)
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            notebooks = gradebook.find_submission(assignment_id, student_id).notebooks
            grades = [grade for notebook in notebooks for grade in notebook.grades]
            cells = {grade.name: [float(grade.score), float(grade.max_score)] for grade in grades}
        before, why = None, []
        if previous is not None and not previous.told:  # that grading was cut short: its own "before" still counts
            before, why = previous.before, previous.why
        elif previous is not None:
            before, why = previous.outcome, differing(previous.fingerprint, now)
        without = [name for each in self.notebooks for name in _without_table(Path(self._format_dest(
            assignment_id, student_id)) / Path(each).name)]  # fmt: skip
        last = LastGrading(now, Outcome(cells, found.kind), without, before, why, told=False)
        last_grading.write(last, path)

    def _tell(self, assignment_id, student_id):
        """Say what a regrade changed, and renew the student's feedback, if there is one."""
        path = self._last(assignment_id, student_id)
        last = last_grading.read(path)
        if last is None or last.told:
            return
        if last.before is not None:
            self.log.warning("%s", last_grading.what_changed(student_id, last))
        page = Path(self.coursedir.format_path(self.coursedir.feedback_directory, student_id, assignment_id))
        renewing = page.with_name(f".{page.name}.renewing")  # nbgrader removes the old page before it writes another
        if page.is_dir() or renewing.exists():
            renewing.touch()
            coursedir = copy.copy(self.coursedir)
            coursedir.student_id = student_id
            nbgrader.converters.GenerateFeedback(coursedir=coursedir, parent=self.parent, force=True).start()
            renewing.unlink()
        last_grading.write(dataclasses.replace(last, told=True), path)


def _without_table(path):
    """The ``grade_id`` of each check that ran to its end and showed no table: something took the table away."""
    if not path.is_file():
        return []
    found = []
    for cell in nbformat.read(path, as_version=4).cells:
        is_check = cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade")
        if is_check and re.search(r"\.score\(\)", cell.source):
            failed = any(output.output_type == "error" for output in cell.outputs)
            shown = "".join(str(output.get("data", {}).get("text/html", "")) for output in cell.outputs)
            if not failed and TABLE not in shown:
                found.append(id_of(cell))
    return found
