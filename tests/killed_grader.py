"""Grade a prepared course in forked processes that are killed, then again without: ``python -m tests.killed_grader``.

The course in the folder TOP is put back before each pair of runs. The first run of a pair ends with SIGKILL before its
n-th step (a file opened to write, renamed or removed, a commit to the gradebook), for each n up to LAST by EVERY, or
at a random moment. After the second run, all that the course holds must be as after one run that was left alone.
Prints a line for each difference, and at last how many steps and moments were tried.
"""

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import sqlalchemy.event
import sqlalchemy.orm
from nbformat.v4 import new_output
from nbgrader.api import Gradebook
from nbgrader.apps import AutogradeApp

from ringzero_course.grading import course as courses
from ringzero_course.grading import last_grading, verdict
from ringzero_course.grading.execute import ExecuteWithPapermill

LAB = "tiny"
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir"}


class QuickExecution(ExecuteWithPapermill):
    """In place of a kernel: a test cell scores its points where the solution above it multiplies."""

    def preprocess(self, nb, resources):
        right = False
        for cell in nb.cells:
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if grade_id.startswith("test_"):
                points = str(float(cell.metadata.nbgrader.points) * right)
                cell.outputs = [new_output("execute_result", data={"text/plain": points}, execution_count=1)]
            right = "return" in cell.source
        resources["ringzero_verdict"] = verdict.Verdict(verdict.OK)
        return nb, resources


def run(top, last_step=0, after=None):
    """Grade in a fork; killed before step ``last_step`` or ``after`` seconds. Returns the steps that were begun."""
    steps = top / "steps"
    child = os.fork()
    if child == 0:
        try:
            _in_the_child(top, last_step, steps)
        finally:
            os._exit(3)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return int(steps.read_text() or 0) if steps.exists() else 0


def _in_the_child(top, last_step, steps):
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.chdir(top)
    counter = os.open(steps, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    begun = 0

    def step(*_):
        nonlocal begun
        begun += 1
        if begun == last_step:
            os.kill(os.getpid(), signal.SIGKILL)
        os.pwrite(counter, str(begun).encode(), 0)

    def look(name, arguments):
        writes = name == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if (writes or name in CHANGES) and "/course/" in os.path.abspath(os.fsdecode(arguments[0])):
            step()

    sqlalchemy.event.listen(sqlalchemy.orm.Session, "before_commit", step)
    sqlalchemy.event.listen(sqlalchemy.orm.Session, "after_commit", step)
    app = AutogradeApp()
    app.initialize([LAB])
    sys.addaudithook(lambda name, arguments: look(name, arguments) if name in CHANGES or name == "open" else None)
    app.start()
    os._exit(0)


def held(course):
    """All that a course holds of its grades, in a form to compare."""
    found = {}
    with Gradebook(f"sqlite:///{course.root / 'gradebook.db'}", "ringzero") as gradebook:
        for submission in gradebook.assignment_submissions(LAB):
            grades = sorted(
                (grade.name, grade.auto_score, grade.manual_score, grade.needs_manual_grade)
                for notebook in submission.notebooks
                for grade in notebook.grades
            )
            found.setdefault(submission.student.id, []).append(grades)
    for student in found:
        page = course.root / "feedback" / student / LAB / f"{LAB}.html"
        folder = course.root / "autograded" / student / LAB
        files = sorted(path.name for path in folder.iterdir())
        last = last_grading.read(last_grading.path_of(course.root, student, LAB))
        found[student] += [verdict.read(folder), last, files, page.read_text() if page.exists() else ""]
    return found


def main(top, every, moments, seed):
    course, kept = courses.Course(top), top / "kept"
    shutil.copytree(course.root, kept)

    def put_back():
        shutil.rmtree(course.root)
        shutil.copytree(kept, course.root)

    begin = time.monotonic()
    steps = run(top)
    seconds, expected = time.monotonic() - begin, held(course)
    rng = random.Random(seed)
    kills = [{"last_step": n} for n in range(1 + rng.randrange(every), steps + 1, every)]
    kills += [{"after": rng.uniform(0, seconds)} for _ in range(moments)]
    for kill in kills:
        put_back()
        run(top, **kill)
        run(top)
        found = held(course)
        for student in {*expected, *found}:
            if found.get(student) != expected.get(student):
                print(f"killed at {kill}: {student}: {found.get(student)} and not {expected.get(student)}")
    print(f"{len(kills)} kills, {steps} steps, {len(expected)} students")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
