"""``nbgrader autograde`` for a class nobody watches: one submission never stops the next, and each gets a verdict.

``CourseAutograde`` differs from nbgrader's ``Autograde`` in six things:

- a submission that is not a notebook, or has another name, scores 0 with a page that says why (nbgrader stops);
- test cells come whole from the instructor's notebook: edited, tagged, copied or deleted ones are restored;
- ``verdict.json`` is written last, beside the autograded notebook; without it a rerun grades the submission again;
- a fault of the grader is never a score: the submission stays to be graded, and the exit status says so;
- whether a submission is graded again is decided by content (``fingerprint.py``), and a regrade says what changed;
- one grader at a time works on a course.
"""

import contextlib
import glob
import logging
import os
import re
import stat
import sys
import warnings
from pathlib import Path

import nbformat
import sqlalchemy.exc
from nbformat.v4 import new_markdown_cell, new_notebook
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters.base import NbGraderException
from nbgrader.utils import parse_utc, rmtree
from traitlets import Bool, Integer, TraitError, Unicode
from traitlets.config import catch_config_error

from ringzero.processes import durable
from ringzero.processes.leftovers import regular
from ringzero_course.boxes.fence import end_leftovers, why_not_in_the_usual_folder
from ringzero_course.grading import last_grading, one_at_a_time, stopped, verdict
from ringzero_course.grading.course import Course
from ringzero_course.grading.execute import ExecuteWithPapermill
from ringzero_course.grading.known_settings import why_no_class, why_no_setting
from ringzero_course.grading.progress import Progress
from ringzero_course.grading.read_submission import why_invalid
from ringzero_course.grading.remembered import RemembersGrades
from ringzero_course.grading.validate import ShowsTables

LONGEST_TIME = 100  # characters


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
    app = nbgrader.apps.autogradeapp.AutogradeApp
    app.start = catch_config_error(getattr(app.start, "__wrapped__", app.start))  # a sentence, not a traceback
    for module in (nbgrader.apps.validateapp, nbgrader.server_extensions.validate_assignment.handlers):
        module.Validator = ShowsTables


class CourseAutograde(RemembersGrades):
    """See the module's docstring."""

    jobs = Integer(1, min=1, help="How many submissions to execute at once, in processes.").tag(config=True)
    scheduler = Unicode("", help="The address of a Dask scheduler whose workers execute submissions.").tag(config=True)
    wait = Bool(True, help="Wait while another grader works on the course; else end with an error.").tag(config=True)

    def start(self):
        self._no_times = set()  # folders whose timestamp.txt holds no time
        self.coursedir.get_existing_timestamp = self._time_in
        root = Path(self.coursedir.root)
        root.mkdir(exist_ok=True)  # where nothing was ever released, ``init_notebooks`` says so
        try:
            with stopped.told(root):
                super().start()
        except stopped.StoppedError as error:
            self.log.error("%s", error)
            raise NbGraderException(str(error)) from None

    def _time_in(self, folder):
        """When a submission was handed in; None where nothing says so. nbgrader fails on what is no time, or a pipe."""
        path = Path(folder) / "timestamp.txt"
        try:
            with open(path, opener=regular) as file:
                return parse_utc(file.read(LONGEST_TIME).strip())
        except (ValueError, OverflowError, OSError):
            if (path.is_symlink() or path.exists()) and folder not in self._no_times:
                self._no_times.add(folder)
                self.log.warning("%s holds no time, such as 2026-11-20 15:00:00 UTC: this submission is in time", path)
            return None

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
        try:
            self._steps = self._resolved_steps()
            why = why_no_class(getattr(self.parent, "cli_config", {})) or why_no_setting(self, *self._steps)
            why = why or self._execution.why_not_here()
        except TraitError as error:
            why = f"Nothing was graded: {error}"
        if why:
            self.log.error(why)
            raise NbGraderException(why)
        if said := why_not_in_the_usual_folder():
            self.log.warning("%s", said[0].upper() + said[1:])
        what = f"nbgrader autograde {self.coursedir.assignment_id}"
        try:
            with one_at_a_time.grading(Path(self.coursedir.root), what, self.wait, self.log.warning):
                end_leftovers()
                with self._executing_ahead():
                    self._convert_notebooks()
        except one_at_a_time.BusyError as error:
            self.log.error("%s", error)
            raise NbGraderException(str(error)) from None

    def _resolved_steps(self):
        """The steps of grading as this run has them, each with its settings: read here alone, by their traits.

        The configuration itself holds words where a setting was given on a command line, ``"False"`` too.
        """
        exporter = self.exporter_class(parent=self, config=self.config)
        for step in [*self.sanitize_preprocessors, *self.autograde_preprocessors]:
            exporter.register_preprocessor(step)
        steps = exporter._preprocessors
        self._execution = next((step for step in steps if isinstance(step, ExecuteWithPapermill)), None)
        if self._execution is None:
            raise TraitError("Autograde.autograde_preprocessors has no ExecuteWithPapermill, which runs the notebook")
        return steps

    @contextlib.contextmanager
    def _executing_ahead(self):
        self._look_ahead = lambda: None
        if self.jobs == 1 and not self.scheduler:
            yield
            return
        from ringzero_course.grading import ahead  # not above: importing Dask takes half a second

        try:
            with ahead.executing_ahead(self.jobs, self.scheduler, self._execution.settings(), self.log) as workers:
                workers.notebooks = self._notebooks_to_come()
                self._look_ahead = workers.look_ahead
                yield
        except ahead.NoWorkersError as error:
            self.log.error("Nothing was graded: %s", error)
            raise NbGraderException(str(error)) from None

    def _notebooks_to_come(self):
        """The notebooks that this run will execute, prepared, in its order. Only reads."""
        exporter = self.exporter_class(parent=self, config=self.config)
        for step in self.sanitize_preprocessors:
            exporter.register_preprocessor(step)
        for folder in sorted(self.assignments):
            ids = re.match(self._format_source("(?P<lab>.*)", "(?P<student>.*)", escape=True), folder).groupdict()
            graded = Path(self._format_dest(ids["lab"], ids["student"])).exists()
            if graded and not self._why_again(ids["lab"], ids["student"]):
                continue
            for name in self._expected(ids["lab"]):
                path = Path(folder) / f"{name}.ipynb"
                with contextlib.suppress(Exception):  # its own turn says what is wrong with it
                    resources = self.init_single_notebook_resources(str(path))
                    if not why_invalid(path, self._source_cells(resources["nbgrader"])):
                        prepared, _ = exporter.from_filename(str(path), resources=resources)
                        yield nbformat.reads(prepared, as_version=4)

    def _convert_notebooks(self):
        self._seen, self._faults, self._graded = [], {}, set()
        failed = None
        with Progress(len(self.assignments), self._outcome) as self._progress, self._quiet_terminal():
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
            last = last_grading.read(self._last(assignment_id, student_id))
            if found.kind in verdict.NEEDS_A_PERSON:
                look.append(f"{student_id}: {found}")
            elif last is not None and last.without_table:
                look.append(f"{student_id}: no table from {', '.join(last.without_table)}")
        self._show_class()
        if look:
            self.log.error("A person must look at %d of %d:\n  %s", len(look), len(self._seen), "\n  ".join(look))
            raise NbGraderException(f"{len(look)} submissions need a person")
        if failed is not None:
            raise failed

    def _outcome(self, student_id):
        """How a submission's turn in this run went, in a few words."""
        lab = self.coursedir.assignment_id
        found, last = verdict.read(self._format_dest(lab, student_id)), last_grading.read(self._last(lab, student_id))
        if found is None or last is None:
            return "no grade: a fault of the grader"
        score = f"{last.outcome.score:g} of {last.outcome.largest:g}, {found.kind}"
        return score if student_id in self._graded else f"{score} (as before)"

    def _show_class(self):
        """The class table, on stdout, and the HTML report."""
        course = Course(Path(self.coursedir.root).parent)
        if course.root == Path(self.coursedir.root):  # elsewhere only if the configuration is not ours
            lab = self.coursedir.assignment_id
            print(f"{course.summary(lab)}\nreport: {course.report_of(lab)}", flush=True)

    @contextlib.contextmanager
    def _quiet_terminal(self):
        """nbgrader tells each file it writes. Leave that to its log file, so that the lines of students are seen."""
        handlers = [each for each in self.log.handlers if type(each) is logging.StreamHandler]
        before = [each.level for each in handlers]
        try:
            for each in handlers:
                each.setLevel(max(each.level, logging.WARNING))
            yield
        finally:
            for each, level in zip(handlers, before, strict=True):
                each.setLevel(level)

    def init_destination(self, assignment_id, student_id):
        with self._recording_faults(student_id):
            return self._is_to_grade(assignment_id, student_id)

    def _is_to_grade(self, assignment_id, student_id):
        self._progress.begin(student_id)
        self._look_ahead()
        folder = Path(self._format_dest(assignment_id, student_id))
        if self.coursedir.notebook_id == "*":
            why = self._why_again(assignment_id, student_id)
            if folder.exists() and why:
                self.log.warning("Grading %s again: %s", student_id, why)
                (folder / verdict.FILENAME).unlink(missing_ok=True)  # first: what is left of the folder is unfinished
                rmtree(str(folder))
            elif folder.exists():
                self._renew_lateness(assignment_id, student_id)
        process = super().init_destination(assignment_id, student_id)
        if process or folder.exists():
            self._seen.append((assignment_id, student_id))
        if not process:
            self._tell(assignment_id, student_id)  # where a run ended between the verdict and this
        return process

    def init_assignment(self, assignment_id, student_id):
        self._verdicts, self._notes = [], []
        with self._recording_faults(student_id):
            folder = Path(self._format_source(assignment_id, student_id))
            if self.coursedir.notebook_id == "*":
                self.notebooks = [str(folder / f"{name}.ipynb") for name in self._expected(assignment_id)]
            with self._leaving_out(folder):
                super().init_assignment(assignment_id, student_id)
            self._set_timestamp(assignment_id, student_id)

    def convert_single_notebook(self, notebook_filename):
        resources = self.init_single_notebook_resources(notebook_filename)["nbgrader"]
        with self._recording_faults(resources["student"]):
            reason = why_invalid(Path(notebook_filename), self._source_cells(resources))
            reason = reason or self._why_not_the_students(Path(notebook_filename))
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
        with self._recording_faults(student_id):
            self._finish(assignment_id, student_id)

    def _finish(self, assignment_id, student_id):
        found = verdict.worst(self._verdicts) if self._verdicts else verdict.Verdict(verdict.OK)
        notes = [*self._notes, *found.notes]
        found = verdict.Verdict(found.kind, found.reason, notes, found.seconds)
        super().set_permissions(assignment_id, student_id)
        folder = Path(self._format_dest(assignment_id, student_id))
        durable.flush_files(folder)
        self._remember(assignment_id, student_id, found)
        verdict.write(found, folder)
        self._graded.add(student_id)
        self._tell(assignment_id, student_id)

    def _expected(self, assignment_id):
        """The names of the assignment's notebooks; none when there is no such assignment (nbgrader then says so)."""
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            try:
                return [notebook.name for notebook in gradebook.find_assignment(assignment_id).notebooks]
            except MissingEntry:
                return []

    def _why_not_the_students(self, path):
        """Why this file is the instructor's own, under another name (a hard link); "" if it is not."""
        if path.stat().st_nlink > 1:
            for own in Path(self.coursedir.root, self.coursedir.source_directory).rglob("*.ipynb"):
                if own.samefile(path):
                    return f"{path.name} is a link to the instructor's notebook."
        return ""

    def _source_cells(self, resources):
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            notebook = gradebook.find_notebook(resources["notebook"], resources["assignment"])
            return {cell.name for cell in notebook.source_cells}

    def _give_zero(self, resources, reason):
        """Score 0 and leave a page that says why, in place of a notebook that cannot be graded."""
        found = verdict.Verdict(verdict.INVALID, reason)
        self.log.error("%s: %s", resources["student"], found)
        page = new_notebook(cells=[new_markdown_cell("This submission could not be graded.", id="verdict")])
        folder = Path(self._format_dest(resources["assignment"], resources["student"]))
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(page, folder / f"{resources['notebook']}.ipynb")
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            names = resources["notebook"], resources["assignment"], resources["student"]
            for grade in gradebook.find_submission_notebook(*names).grades:
                grade.auto_score, grade.needs_manual_grade = 0, False
            gradebook.db.commit()
        self._verdicts.append(found)

    def _forget(self, assignment_id, student_id):
        """After a fault of ours: no row in the gradebook, which would read as 0, unless it holds a score."""
        with contextlib.suppress(Exception), Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            grades = [g for n in gradebook.find_submission(assignment_id, student_id).notebooks for g in n.grades]
            if all(grade.auto_score is None and grade.manual_score is None for grade in grades):
                gradebook.remove_submission(assignment_id, student_id)

    @contextlib.contextmanager
    def _recording_faults(self, student_id):
        try:
            with stopped.told(Path(self.coursedir.root)):
                yield
        except Exception as error:
            self._faults[student_id] = f"{type(error).__name__}: {error}"
            raise

    @contextlib.contextmanager
    def _leaving_out(self, folder):
        """nbgrader copies a submission's other files: no links of any kind, which may lead anywhere; no verdict."""
        odd = [path.name for path in folder.rglob("*") if not _is_file_or_folder(path)]
        ignore = self.coursedir.ignore
        self.coursedir.ignore = [*ignore, *map(glob.escape, odd), verdict.FILENAME]
        try:
            yield
        finally:
            self.coursedir.ignore = ignore


def _is_file_or_folder(path):
    """Whether it is a folder, or a file under no other name, which could be one that its student may not read."""
    status = path.lstat()
    return stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1)
