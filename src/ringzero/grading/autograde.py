"""``nbgrader autograde`` for a class nobody watches: one submission never stops the next, and each gets a verdict.

``CourseAutograde`` differs from nbgrader's ``Autograde`` in four things:

- a submission that is not a notebook, or has another name, scores 0 with a page that says why (nbgrader stops);
- test cells come whole from the instructor's notebook: edited, tagged, copied or deleted ones are restored;
- ``verdict.json`` is written last, beside the autograded notebook; without it a rerun grades the submission again;
- a fault of the grader is never a score: the submission stays to be graded, and the exit status says so.
"""

import contextlib
import glob
import json
import os
import stat
import sys
import warnings
from pathlib import Path

import nbformat
import nbgrader.converters
import sqlalchemy.exc
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import rmtree

from ringzero.grading import verdict
from ringzero.grading.validate import ShowsTables
from ringzero.processes.fence import end_leftovers

LARGEST_NOTEBOOK = 50_000_000  # bytes


def install():
    """Have ``nbgrader``, the command and the server, grade with ``CourseAutograde``, validate with ``ShowsTables``."""
    import nbgrader.apps.api
    import nbgrader.apps.autogradeapp
    import nbgrader.apps.validateapp
    import nbgrader.server_extensions.validate_assignment.handlers

    warnings.filterwarnings("ignore", category=sqlalchemy.exc.SAWarning)  # nbgrader's own, three for each submission
    scripts = str(Path(sys.executable).parent)
    if scripts not in os.environ.get("PATH", "").split(os.pathsep):  # nbgrader calls `alembic` by its bare name
        os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])
    for module in (nbgrader.apps.api, nbgrader.apps.autogradeapp):
        module.Autograde = CourseAutograde
    for module in (nbgrader.apps.validateapp, nbgrader.server_extensions.validate_assignment.handlers):
        module.Validator = ShowsTables


class CourseAutograde(nbgrader.converters.Autograde):
    """See the module's docstring."""

    def init_notebooks(self):
        """As nbgrader does it, but a folder without any notebook is a submission too.

        Raises NbGraderException where the lab was never released: it is nobody's fault who handed it in.
        """
        lab = self.coursedir.assignment_id
        if not self._expected(lab):
            why = f"{lab} is not released in this course. Do that first: ringzero release {lab}"
            self.log.error(why)
            raise NbGraderException(why)
        with contextlib.suppress(NbGraderException):
            super().init_notebooks()
        if self.coursedir.notebook_id == "*":
            pattern = self._format_source(self.coursedir.assignment_id, self.coursedir.student_id)
            for folder in filter(os.path.isdir, glob.glob(pattern)):
                self.assignments.setdefault(folder, [])
        if not self.assignments:
            super().init_notebooks()  # it raises, with nbgrader's own message

    def convert_notebooks(self):
        end_leftovers()
        self._seen, self._faults = [], {}
        failed = None
        try:
            super().convert_notebooks()
        except NbGraderException as error:
            failed = error
        look = []
        for assignment_id, student_id in self._seen:
            folder = self._format_dest(assignment_id, student_id)
            found = verdict.read(folder)
            if found is None:
                found = verdict.Verdict(verdict.GRADER, self._faults.get(student_id, "not finished; see the log"))
                verdict.write(found, folder)
                self._forget(assignment_id, student_id)
            if found.kind in verdict.NEEDS_A_PERSON:
                look.append(f"{student_id}: {found}")
        if look:
            self.log.error("A person must look at %d of %d:\n  %s", len(look), len(self._seen), "\n  ".join(look))
            raise NbGraderException(f"{len(look)} submissions need a person")
        if failed is not None:
            raise failed

    def init_destination(self, assignment_id, student_id):
        folder = Path(self._format_dest(assignment_id, student_id))
        found = verdict.read(folder)
        unfinished = found is None or found.kind == verdict.GRADER
        if folder.exists() and unfinished and self.coursedir.notebook_id == "*":
            self.log.warning("Grading %s again: %s", student_id, found or "its grading was cut short")
            rmtree(str(folder))
        process = super().init_destination(assignment_id, student_id)
        if process or folder.exists():
            self._seen.append((assignment_id, student_id))
        return process

    def init_assignment(self, assignment_id, student_id):
        self._verdicts, self._notes = [], []
        with self._recording_faults(student_id):
            folder = Path(self._format_source(assignment_id, student_id))
            if self.coursedir.notebook_id == "*":
                self.notebooks = [str(folder / f"{name}.ipynb") for name in self._expected(assignment_id)]
            with self._leaving_out(folder):
                super().init_assignment(assignment_id, student_id)

    def convert_single_notebook(self, notebook_filename):
        resources = self.init_single_notebook_resources(notebook_filename)["nbgrader"]
        with self._recording_faults(resources["student"]):
            reason = why_invalid(Path(notebook_filename), self._source_cells(resources))
            if reason:
                self._give_zero(resources, reason)
            else:
                super().convert_single_notebook(notebook_filename)

    def write_single_notebook(self, output, resources):
        super().write_single_notebook(output, resources)
        self._notes += resources.get("ringzero_notes", [])
        if "ringzero_verdict" in resources:
            self._verdicts.append(resources["ringzero_verdict"])

    def set_permissions(self, assignment_id, student_id):  # the last step of a submission: its grades are saved
        found = verdict.worst(self._verdicts) if self._verdicts else verdict.Verdict(verdict.OK)
        notes = [*self._notes, *found.notes]
        found = verdict.Verdict(found.kind, found.reason, notes, found.seconds)
        verdict.write(found, self._format_dest(assignment_id, student_id))
        super().set_permissions(assignment_id, student_id)

    def _expected(self, assignment_id):
        """The names of the assignment's notebooks; none when there is no such assignment (nbgrader then says so)."""
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            try:
                return [notebook.name for notebook in gradebook.find_assignment(assignment_id).notebooks]
            except MissingEntry:
                return []

    def _source_cells(self, resources):
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            notebook = gradebook.find_notebook(resources["notebook"], resources["assignment"])
            return {cell.name for cell in notebook.source_cells}

    def _give_zero(self, resources, reason):
        """Score 0 and leave a page that says why, in place of a notebook that cannot be graded."""
        self.log.error("%s: %s: %s", resources["student"], verdict.INVALID, reason)
        page = new_notebook(cells=[new_markdown_cell("This submission could not be graded.", id="verdict")])
        folder = Path(self._format_dest(resources["assignment"], resources["student"]))
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(page, folder / f"{resources['notebook']}.ipynb")
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            names = resources["notebook"], resources["assignment"], resources["student"]
            for grade in gradebook.find_submission_notebook(*names).grades:
                grade.auto_score, grade.needs_manual_grade = 0, False
            gradebook.db.commit()
        self._verdicts.append(verdict.Verdict(verdict.INVALID, reason))

    def _forget(self, assignment_id, student_id):
        """After a fault of ours: no row in the gradebook, which would read as 0, unless it holds a score."""
        with contextlib.suppress(Exception), Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            grades = [g for n in gradebook.find_submission(assignment_id, student_id).notebooks for g in n.grades]
            if all(grade.auto_score is None and grade.manual_score is None for grade in grades):
                gradebook.remove_submission(assignment_id, student_id)

    @contextlib.contextmanager
    def _recording_faults(self, student_id):
        try:
            yield
        except Exception as error:
            self._faults[student_id] = f"{type(error).__name__}: {error}"
            raise

    @contextlib.contextmanager
    def _leaving_out(self, folder):
        """nbgrader copies a submission's other files: not links, which may lead anywhere, and no verdict."""
        odd = [path.name for path in folder.rglob("*") if not _is_file_or_folder(path)]
        ignore = self.coursedir.ignore
        self.coursedir.ignore = [*ignore, *map(glob.escape, odd), verdict.FILENAME]
        try:
            yield
        finally:
            self.coursedir.ignore = ignore


def _is_file_or_folder(path):
    mode = path.lstat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def why_invalid(path, source_cells):
    """Why the file ``path`` cannot be graded as the notebook with the cells ``source_cells``; "" when it can."""
    if not path.exists() and not path.is_symlink():
        others = sorted(other.name for other in path.parent.iterdir())
        found = f" The submission holds {', '.join(others[:5])}." if others else " The submission is empty."
        return f"There is no {path.name}.{found} Submit the notebook under the name it was handed out with."
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return f"{path.name} is not a file (a link or a folder)."
    if status.st_size > LARGEST_NOTEBOOK:
        return f"{path.name} has {status.st_size} bytes, over the limit of {LARGEST_NOTEBOOK}. Clear its outputs."
    if status.st_size == 0:
        return f"{path.name} is empty."
    try:
        data = json.loads(path.read_bytes().decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError:
        return f"{path.name} is not a text file, so not a notebook."
    except (ValueError, RecursionError) as error:
        return f"{path.name} is not a notebook: it is not valid JSON ({error})."
    return _why_not_a_notebook(path.name, data, source_cells)


def _no_constant(name):
    raise ValueError(f"it holds {name}, which JSON does not have")


def _why_not_a_notebook(name, data, source_cells):
    version = data.get("nbformat") if isinstance(data, dict) else None
    if version != 4:
        return f"{name} has nbformat {version!r}; grading reads 4. Open it in JupyterLab and save it again."
    try:
        notebook = nbformat.from_dict(data)
        _, notebook = nbformat.validator.normalize(notebook, strip_invalid_metadata=True)
        nbformat.validate(notebook)
    except Exception as error:  # nbformat fails on odd data in many ways
        return f"{name} is not a valid notebook: {str(error).splitlines()[0][:200]}"
    if not source_cells & {_grade_id(cell) for cell in notebook.cells}:
        return f"{name} holds none of the lab's cells: it is another notebook."
    return ""


def _grade_id(cell):
    metadata = cell.metadata.get("nbgrader")
    grade_id = metadata.get("grade_id") if isinstance(metadata, dict) else None
    return grade_id if isinstance(grade_id, str) else None


class RestoreCells(NbGraderPreprocessor):
    """Give the notebook the instructor's cells: all of a locked one, the metadata of a solution.

    A cell that appears twice (copied, or split) counts where it is last; one that is missing is put back.
    """

    def preprocess(self, nb, resources):
        names = resources["nbgrader"]["notebook"], resources["nbgrader"]["assignment"]
        with Gradebook(resources["nbgrader"]["db_url"]) as gradebook:
            sources = {_grade_id(cell): cell for cell in _sources(gradebook.find_notebook(*names))}
        notes = resources.setdefault("ringzero_notes", [])
        cells, seen = [], set()
        for cell in reversed(nb.cells):
            grade_id = _grade_id(cell)
            cell.metadata.pop("nbgrader", None)
            if grade_id in seen:
                notes.append(f"cell {grade_id} is there more than once: the last one counts")
            elif grade_id in sources:
                seen.add(grade_id)
                cell = _restored(cell, sources[grade_id])
            cells.insert(0, cell)
        self._put_back(cells, sources, notes)
        nb.cells = cells
        nb.metadata = nbformat.from_dict({"language_info": {"name": "python"}})
        return nb, resources

    @staticmethod
    def _put_back(cells, sources, notes):
        previous = -1
        for grade_id, source in sources.items():
            places = [i for i, cell in enumerate(cells) if _grade_id(cell) == grade_id]
            if places:
                previous = places[0]
            else:
                previous += 1
                cells.insert(previous, _restored(None, source))
                notes.append(f"cell {grade_id} was missing: it was put back as it was handed out")


def _sources(notebook):
    """The instructor's cells in the gradebook, in their order, as notebook cells."""
    grades = {cell.name: cell.max_score for cell in notebook.grade_cells}
    solutions = {cell.name for cell in notebook.solution_cells}
    tasks = {cell.name: cell.max_score for cell in notebook.task_cells}
    for cell in notebook.source_cells:
        metadata = {
            "grade": cell.name in grades,
            "grade_id": cell.name,
            "locked": cell.locked,
            "solution": cell.name in solutions,
            "task": cell.name in tasks,
            "cell_type": cell.cell_type,
            "checksum": cell.checksum,
            "schema_version": 3,
        }
        if cell.name in grades or cell.name in tasks:
            metadata["points"] = {**grades, **tasks}[cell.name]
        new = new_code_cell if cell.cell_type == "code" else new_markdown_cell
        yield new(cell.source or "", metadata={"nbgrader": metadata})


def _restored(cell, source):
    """``source``, with the student's text where it is the student's to write."""
    if cell is not None:
        source.id = cell.get("id", source.id)
        if not source.metadata.nbgrader.locked:
            source.source = cell.source
    return source
