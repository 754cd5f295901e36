"""A course directory: hand out a lab, take submissions in, grade them, read the grades.

There is one way through the grader: the sample class, ``ringzero mutants`` and the tests take it, too, in folders of
their own.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import nbformat

from ringzero.processes import durable
from ringzero_course.grading import items, last_grading, needs, report, verdict

CONFIG = "nbgrader_config.py"
GRADEBOOK = "RINGZERO_GRADEBOOK"  # the environment variable that names the gradebook's server, if it is on one


@dataclass(frozen=True)
class Grade:
    """One submission: ``cells`` is ``{grade_id: (score, max)}`` in the lab's order; ``manual`` waits for a person.

    ``without_table`` names checks that ran and showed no table; ``penalty`` is in points, taken off for being late;
    ``name`` and ``lms_id`` (the number in Canvas or Moodle) are those of the roster, if it has any.
    """

    cells: dict
    verdict: verdict.Verdict
    manual: tuple = ()
    without_table: tuple = ()
    late_seconds: float = 0.0
    penalty: float = 0.0
    name: str = ""
    lms_id: str = ""

    @property
    def score(self):
        # Checks give hundredths, which floats add up to 6.4399999999999995.
        return max(0.0, round(sum(score for score, _ in self.cells.values()) - self.penalty, 2))

    @property
    def largest(self):
        return sum(largest for _, largest in self.cells.values())

    def as_data(self):
        """What ``expected.json`` holds of it."""
        return {
            "cells": {name: list(pair) for name, pair in self.cells.items()},
            "score": self.score,
            "max": self.largest,
            "verdict": self.verdict.kind,
        }


@dataclass(frozen=True)
class Course:
    """The course directory that the ``nbgrader_config.py`` in ``top`` names, ``top/course``.

    ``sandboxed``: ``autograde`` runs submissions in sandboxes, as ``grading/kernels.py`` says.
    """

    top: Path
    sandboxed: bool = False

    @property
    def root(self):
        return self.top / "course"

    @property
    def db_url(self):
        """The address of the gradebook: ``gradebook.db`` in the course directory, or what the configuration says."""
        from nbgrader.coursedir import CourseDirectory

        return CourseDirectory(config=self.configuration()).db_url

    def configuration(self):
        """What ``CONFIG`` says, as a ``traitlets.config.Config``. Raises ConfigFileNotFound where there is none."""
        from traitlets.config import PyFileConfigLoader

        return PyFileConfigLoader(CONFIG, path=str(self.top)).load_config()

    def gradebook(self):
        """nbgrader's ``Gradebook``, to be used with ``with``."""
        from nbgrader.api import Gradebook

        self.root.mkdir(exist_ok=True)
        return Gradebook(self.db_url, "ringzero")

    def hand_out(self, lab, source):
        """Put the instructor's notebook ``source`` in, and have nbgrader make the release and the gradebook from it."""
        folder = self.root / "source" / lab
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(source, folder / f"{lab}.ipynb")
        self.nbgrader("generate_assignment", lab, "--force", check=True)

    def submit(self, student, lab, content, name=None):
        """Put a submission in, in place of the student's earlier one. ``content``: a notebook, or the file's bytes."""
        folder = self.root / "submitted" / student / lab
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        data = content if isinstance(content, bytes) else nbformat.writes(content).encode()
        (folder / (name or f"{lab}.ipynb")).write_bytes(data)

    def roster(self):
        """``{number in Canvas: student}`` of the students who have one."""
        with self.gradebook() as gradebook:
            return {student.lms_user_id: student.id for student in gradebook.students if student.lms_user_id}

    def know(self, numbers):
        """Note the students of these ``{number in Canvas: student}`` who are not in the roster yet."""
        known = self.roster()
        with self.gradebook() as gradebook:
            for number, student in numbers.items():
                if number not in known:
                    gradebook.update_or_create_student(student, lms_user_id=number)

    def autograde(self, lab, students="*", force=False):
        """Grade, and return the exit status: 0 unless a person must look at a submission."""
        options = ["--force"] if force else []
        options.append(f"--ExecuteWithPapermill.sandbox={self.sandboxed}")
        return self.nbgrader("autograde", lab, "--student", students, *options).returncode

    def feedback(self, lab, students="*"):
        self.nbgrader("generate_feedback", lab, "--student", students, "--force", check=True)

    def nbgrader(self, *arguments, check=False):
        """The ``nbgrader`` command, run from ``top``. With ``check``, a failure raises RuntimeError with its output."""
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", *arguments],
            cwd=self.top, env=_environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.root.mkdir(exist_ok=True)
        with open(self.root / "nbgrader.log", "a") as log:
            log.write(f"$ nbgrader {' '.join(arguments)}\n{done.stdout}{done.stderr}")
        if check and done.returncode != 0:
            raise RuntimeError(f"nbgrader {' '.join(arguments)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
        return done

    def grades(self, lab, students=None):
        """``{student: Grade}`` of what is graded, from nbgrader's database and the verdicts."""
        found = {}
        with self.gradebook() as gradebook:
            for submission in gradebook.assignment_submissions(lab):
                name = submission.student.id
                says = verdict.read(self.root / "autograded" / name / lab)
                if says is None or (students is not None and name not in students):
                    continue
                order = {cell.name: i for i, cell in enumerate(gradebook.find_notebook(lab, lab).source_cells)}
                grades = sorted((g for n in submission.notebooks for g in n.grades), key=lambda g: order.get(g.name, 0))
                cells = {g.name: (float(g.score), float(g.max_score)) for g in grades}
                last = last_grading.read(last_grading.path_of(self.root, name, lab))
                student = submission.student
                found[name] = Grade(
                    cells,
                    says,
                    manual=tuple(g.name for g in grades if g.needs_manual_grade),
                    without_table=tuple(last.without_table) if last else (),
                    late_seconds=submission.total_seconds_late,
                    penalty=sum(n.late_submission_penalty or 0.0 for n in submission.notebooks),
                    name=" ".join(filter(None, (student.first_name, student.last_name))),
                    lms_id=student.lms_user_id or "",
                )
        return found

    def handed_in(self, lab):
        """The students who handed something in."""
        return {path.parent.name for path in (self.root / "submitted").glob(f"*/{lab}") if path.is_dir()}

    def summary(self, lab):
        """The class as text: the table, and who needs a look and why. Writes the same as HTML to ``report_of(lab)``."""
        graded, handed_in = self.grades(lab), self.handed_in(lab)
        durable.write(self.report_of(lab), report.page(lab, graded, handed_in, self.parts(lab, graded)))
        lines = [table(graded, lab)] if graded else []
        look = needs.of_class(graded, handed_in)
        lines += [f"needs a look: {student}: {'; '.join(why)}" for student, why in look.items()]
        return "\n".join(lines)

    def parts(self, lab, graded):
        """How each part of a lab went: ``items.Part``, of what ``grades`` returned."""
        return items.parts(graded, items.tables_of(self.root, lab, list(graded)))

    def report_of(self, lab):
        """Where the HTML report of a lab lies."""
        return self.root / "report" / f"{lab}.html"

    def grade_of(self, student, lab):
        """One student's ``Grade``. Raises RuntimeError where there is none: a fault of the grader."""
        grade = self.grades(lab, {student}).get(student)
        if grade is None:
            says, log = verdict.read(self.root / "autograded" / student / lab), (self.root / "nbgrader.log").read_text()
            raise RuntimeError(f"{lab} of {student} was not graded: {says}\n{log[-3000:]}")
        return grade

    def forget(self, student):
        """Remove a student, with everything submitted and graded."""
        from nbgrader.api import MissingEntry

        for step in ("submitted", "autograded", "graded", "feedback"):
            shutil.rmtree(self.root / step / student, ignore_errors=True)
        with self.gradebook() as gradebook, suppress(MissingEntry):
            gradebook.remove_student(student)


@contextmanager
def temporary_course(lab, source, sandboxed=False):
    """A course of its own in a temporary folder, with ``lab`` handed out; graded by the repository's configuration."""
    with tempfile.TemporaryDirectory(prefix="ringzero-course-") as top:
        shutil.copy(repository() / CONFIG, top)
        course = Course(Path(top), sandboxed)
        course.hand_out(lab, source)
        yield course


def grade(notebook, lab, source=None, sandboxed=False):
    """The ``Grade`` of one submission (a notebook, or a file's bytes), by the whole of the grader."""
    from ringzero_course.grading import build_labs

    with temporary_course(lab, source or build_labs.source_notebook(lab), sandboxed) as course:
        course.submit("someone", lab, notebook)
        course.autograde(lab)
        return course.grade_of("someone", lab)


def repository():
    """The checkout this package runs from. The labs' sources, the sample class and the mutants are only there."""
    top = Path(__file__).resolve().parents[3]
    if not (top / CONFIG).is_file():
        raise FileNotFoundError(
            f"grading a course needs a checkout of the repository: there is no {CONFIG} in {top}. "
            'Clone it and install it there with "pip install -e .".'
        )
    return top


def _environment():
    environment = dict(os.environ)
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        environment.pop(name, None)
    return environment


def table(grades, lab):
    """The class as text: students down, cells across (by number; the names stand below)."""
    names = list(dict.fromkeys(name for grade in grades.values() for name in grade.cells))
    largest = {name: pair[1] for grade in grades.values() for name, pair in grade.cells.items()}
    rows = [["", *(str(i + 1) for i in range(len(names))), "total", "verdict"]]
    rows.append(["out of", *(_points(largest[name]) for name in names), _points(sum(largest.values())), ""])
    for student, grade in sorted(grades.items()):
        cells = [_cell_text(grade, name) for name in names]
        rows.append([student, *cells, _points(grade.score), _shortened(str(grade.verdict), 80)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        middle = [text.rjust(width) for text, width in zip(row[1:-1], widths[1:-1], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *middle, row[-1]]).rstrip())
    legend = ", ".join(f"{i + 1} {name}" for i, name in enumerate(names))
    return "\n".join([lab, *lines, legend, "* waits for a person's grade"])


def _cell_text(grade, name):
    if name not in grade.cells:
        return ""
    return _points(grade.cells[name][0]) + ("*" if name in grade.manual else "")


def _shortened(text, longest):
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _points(number):
    return f"{number:g}" if number == round(number, 2) else f"{number:.2f}"
