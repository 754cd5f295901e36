"""``ringzero mutants``: wrong solutions that must lose points.

Each of ``tests/mutants/LAB.py`` puts a mistake that people make into the reference solution. They run in one live
kernel a lab, as a student changes a cell: shown is the sentence that the student reads, after how many seconds, and at
the end what each claim of the lab's checks catches (``catches``). With ``--graded`` they are handed in to the real
grader, with two more: the reference, which must get every point, and the notebook as it is handed out, which must get
none. Either way a wrong solution is caught when the test cell that it names gives less than its points.
"""

import json
import queue
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import click

from ringzero_course.authoring import catches

REFERENCE, UNTOUCHED = "reference", "untouched"


@dataclass(frozen=True)
class Row:
    """One graded solution: ``caught`` is whether the grader did what it must, ``by`` the test cell that took points."""

    lab: str
    name: str
    caught: bool
    by: str | None
    grade: object

    def as_data(self):
        return {"lab": self.lab, "name": self.name, "caught": self.caught, "by": self.by}


def labs() -> list[str]:
    """The labs that have wrong solutions."""
    from ringzero_course.grading import course

    return sorted(path.stem for path in (course.repository() / "tests" / "mutants").glob("*.py"))


def run(lab: str, names: Iterable[str] | None = None, jobs: int = 2, secret: int = 0) -> Iterator[Row]:
    """Grade solutions of ``lab`` (all, or those in ``names``), ``jobs`` at a time; yield a ``Row`` as each is done."""
    from ringzero_course.authoring import submission
    from ringzero_course.grading import build_labs, course

    wrong = submission.wrong_solutions(lab)
    todo = [REFERENCE, UNTOUCHED, *wrong] if names is None else list(names)
    # Made before grading, since nbgrader changes the working directory.
    handed_in = {
        name: submission.submission(lab, wrong[name].replacements if name in wrong else {}, filled=name != UNTOUCHED)
        for name in todo
    }
    source = build_labs.source_notebook(lab, secret=secret)
    with course.temporary_course(lab, source) as handed_out, tempfile.TemporaryDirectory() as tops:
        free: queue.SimpleQueue = queue.SimpleQueue()  # a gradebook for each worker: nothing waits for another's lock
        for i in range(jobs):
            free.put(course.Course(Path(shutil.copytree(handed_out.top, Path(tops) / str(i)))))
        with ThreadPoolExecutor(jobs) as pool:
            grades = {pool.submit(_grade, free, lab, name, handed_in[name]): name for name in todo}
            try:
                for done in as_completed(grades):
                    name = grades[done]
                    yield judge(lab, name, done.result(), wrong[name].caught_by if name in wrong else None)
            finally:
                pool.shutdown(cancel_futures=True)


def _grade(free, lab, name, handed_in):
    somewhere = free.get()
    try:
        somewhere.submit(name, lab, handed_in)
        somewhere.autograde(lab, name)
        return somewhere.grade_of(name, lab)
    finally:
        free.put(somewhere)


def judge(lab, name, grade, caught_by=None):
    """The ``Row`` for a solution that got ``grade``; a wrong one must lose points in the test cell ``caught_by``."""
    automatic = {cell: pair for cell, pair in grade.cells.items() if cell not in grade.manual}
    lost = [cell for cell, (score, largest) in automatic.items() if score < largest]
    if name == REFERENCE:
        return Row(lab, name, not lost and grade.verdict.kind == "ok", None, grade)
    if name == UNTOUCHED:
        gained = [cell for cell, (score, _) in automatic.items() if score > 0]
        return Row(lab, name, not gained and bool(automatic), lost[0] if lost else None, grade)
    return Row(lab, name, caught_by in lost, caught_by if caught_by in lost else None, grade)


def report(row):
    """A row as a line of text."""
    points = f"{row.grade.score:g}/{row.grade.largest:g}"
    if row.name == REFERENCE:
        said = "full marks" if row.caught else f"NOT FULL MARKS ({row.grade.verdict})"
    elif row.name == UNTOUCHED:
        said = "zero" if row.caught else "NOT ZERO"
    else:
        said = f"caught by {row.by}" if row.caught else "SURVIVED"
    return f"{row.lab}  {row.name:36}  {points:>8}  {said}"


@click.command()
@click.option("--lab", "wanted", metavar="LAB", help="One lab; all that have wrong solutions when left out.")
@click.option("--json", "path", type=click.Path(dir_okay=False, path_type=Path), help="Write the rows to this file.")
@click.option("--secret", default=0, show_default=True, help="Other hidden cases: 1, 2, 3, …")
@click.option("--typical", is_flag=True, help="Only those that show typical mistakes.")
@click.option("--times", default=1, show_default=True, help="How often each runs, for the median of its seconds.")
@click.option("--graded", is_flag=True, help="Through the real grader, with the reference and the untouched notebook.")
@click.option("--jobs", default=2, show_default=True, help="With --graded: how many at a time.")
def mutants(wanted, path, secret, typical, times, graded, jobs):
    """Run every wrong solution of a lab, and show what a student reads and what each claim of its checks catches."""
    try:
        known = labs()
    except FileNotFoundError as error:
        raise click.ClickException(str(error)) from None
    if wanted is not None and wanted not in known:
        raise click.BadParameter(f"{wanted!r} has no wrong solutions; there is {', '.join(known)}", param_hint="--lab")
    chosen = known if wanted is None else [wanted]
    if graded:
        _show_grades(chosen, path, secret, jobs)
    else:
        _show_sentences(chosen, path, typical, times, secret)


def _show_grades(labs, path, secret, jobs):
    from tqdm import tqdm

    rows = []
    try:
        for lab in labs:
            for row in tqdm(run(lab, jobs=jobs, secret=secret), desc=lab, unit="solution", file=sys.stderr):
                rows.append(row)
                click.echo(report(row))
    finally:  # also when interrupted: the rows so far
        if path is not None:
            rows.sort(key=lambda row: (row.lab, row.name not in (REFERENCE, UNTOUCHED), row.name))
            path.write_text(json.dumps([row.as_data() for row in rows], indent=1) + "\n")
    wrong = [row.name for row in rows if not row.caught]
    if wrong:
        raise click.ClickException(f"{len(wrong)} of {len(rows)} did not come out as they must: {', '.join(wrong)}")


def _show_sentences(labs, path, only_typical, times, secret):
    from ringzero_course.authoring import sentences, submission

    typical, rows = sentences.typical(), []
    try:
        for lab in labs:
            wrong = submission.wrong_solutions(lab).values()
            for row in sentences.said(
                lab, [w for w in wrong if not only_typical or (lab, w.name) in typical], times, secret
            ):
                rows.append(row)
                click.echo(sentences.report(row))
            if not only_typical:
                click.echo(catches.report({row.name: row.outcomes for row in rows if row.lab == lab}))
    finally:
        if path is not None:
            path.write_text(json.dumps([sentences.as_data(row) for row in rows], indent=1) + "\n")
    poor = [row.name for row in rows if sentences.library_line(row.sentence)]
    passed = [row.name for row in rows if row.sentence == sentences.EVERY_POINT]
    wrong = [(poor, "name a library's line"), (passed, "got every point")]
    if any(names for names, _ in wrong):
        said = [f"{len(names)} of {len(rows)} {what}: {', '.join(names)}" for names, what in wrong if names]
        raise click.ClickException("; ".join(said))
