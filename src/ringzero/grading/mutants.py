"""``ringzero mutants``: wrong solutions that the grader must not let pass.

Each file of ``tests/mutants/<lab>/`` puts something wrong into the reference solution, in a way that known courses'
tests let through. They are graded as students are, with two more: the reference, which must get every point, and the
notebook as it is handed out, which must get none. A mutant is caught when the test cell that its file names gives less
than its points. At the end of a lab stands what each claim of its checks catches (``catches``). ``--shape K`` grades
with other sizes, models and times than the lab's (``ringzero.lab.other_shapes``), where all must come out the same.
"""

import json
import queue
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

import click

from ringzero.grading import catches

REFERENCE, UNTOUCHED = "reference", "untouched"


@dataclass(frozen=True)
class Row:
    """One solution: ``caught`` is whether the grader did what it must, ``by`` the test cell that took points off.

    ``outcomes`` are those of the claims in the test cell that must catch it.
    """

    lab: str
    name: str
    caught: bool
    by: str | None
    grade: object
    outcomes: tuple = ()

    def as_data(self):
        return {"lab": self.lab, "name": self.name, "caught": self.caught, "by": self.by}


def labs():
    """The labs that have wrong solutions."""
    from ringzero.grading import course

    return sorted(path.name for path in (course.repository() / "tests" / "mutants").iterdir() if path.is_dir())


def files(lab):
    """``{name: path}`` of the wrong solutions of ``lab``."""
    from ringzero.grading import course

    return {path.stem: path for path in sorted((course.repository() / "tests" / "mutants" / lab).glob("*.py"))}


def run(lab, names=None, jobs=2, shape=0):
    """Grade solutions of ``lab`` (all, or those in ``names``), ``jobs`` at a time; yield a ``Row`` as each is done."""
    from ringzero.grading import build_labs, course

    todo = [REFERENCE, UNTOUCHED, *files(lab)] if names is None else list(names)
    # Made before grading, since nbgrader changes the working directory.
    submissions = {name: notebook(lab, name) for name in todo}
    source = build_labs.source_notebook(lab, shape=shape)
    with course.temporary_course(lab, source) as handed_out, tempfile.TemporaryDirectory() as tops:
        free = queue.SimpleQueue()  # a gradebook for each worker: nothing waits for another's lock
        for i in range(jobs):
            free.put(course.Course(Path(shutil.copytree(handed_out.top, Path(tops) / str(i)))))
        with ThreadPoolExecutor(jobs) as pool:
            grades = {pool.submit(_grade, free, lab, name, submissions[name]): name for name in todo}
            try:
                for done in as_completed(grades):
                    grade, notebook_graded = done.result()
                    row = judge(lab, grades[done], grade)
                    yield replace(row, outcomes=tuple(_outcomes(row, notebook_graded)))
            finally:
                pool.shutdown(cancel_futures=True)


def _grade(free, lab, name, submission):
    somewhere = free.get()
    try:
        somewhere.submit(name, lab, submission)
        somewhere.autograde(lab, name)
        graded = somewhere.root / "autograded" / name / lab / f"{lab}.ipynb"
        return somewhere.grade_of(name, lab), graded.read_text() if graded.exists() else None
    finally:
        free.put(somewhere)


def _outcomes(row, notebook_graded):
    """Of the claims in the cell that must catch a wrong solution, in the graded notebook (JSON)."""
    if row.name in (REFERENCE, UNTOUCHED) or notebook_graded is None:
        return []
    cells = {cell.get("id"): cell for cell in json.loads(notebook_graded)["cells"]}
    outputs = cells.get(caught_by(files(row.lab)[row.name]), {}).get("outputs", [])
    shown = [output.get("data", {}).get("text/plain", "") for output in outputs]
    return catches.outcomes("\n".join(text if isinstance(text, str) else "".join(text) for text in shown))


def notebook(lab, name):
    """What a student with this solution would hand in."""
    from ringzero.grading import submission

    replacements = {} if name in (REFERENCE, UNTOUCHED) else submission.read_replacements(files(lab)[name], lab)
    return submission.submission(lab, replacements, filled=name != UNTOUCHED)


def judge(lab, name, grade):
    """The ``Row`` for a solution that got ``grade``."""
    automatic = {cell: pair for cell, pair in grade.cells.items() if cell not in grade.manual}
    lost = [cell for cell, (score, largest) in automatic.items() if score < largest]
    if name == REFERENCE:
        return Row(lab, name, not lost and grade.verdict.kind == "ok", None, grade)
    if name == UNTOUCHED:
        gained = [cell for cell, (score, _) in automatic.items() if score > 0]
        return Row(lab, name, not gained and bool(automatic), lost[0] if lost else None, grade)
    named = caught_by(files(lab)[name])
    by = named if named in lost else lost[0] if lost and named is None else None
    return Row(lab, name, by is not None, by, grade)


def caught_by(path):
    """The test cell that must catch the wrong solution in ``path``: its line ``# caught by: GRADE_ID``."""
    found = re.search(r"^# caught by: *(\S+)", path.read_text(), re.MULTILINE)
    return found[1] if found else None


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
@click.option("--jobs", default=2, show_default=True, help="How many to grade at a time.")
@click.option("--shape", default=0, show_default=True, help="Other sizes, models and times: 1, 2, 3, …")
@click.option("--sentences", is_flag=True, help="Show what a student reads, and after how many seconds; no grading.")
@click.option("--typical", is_flag=True, help="With --sentences: only those that show typical mistakes.")
@click.option("--signatures", is_flag=True, help="Store what tables say of those that have no signature yet.")
@click.option("--misconceptions", is_flag=True, help="Measure how well the mistakes are named; no runs.")
@click.option("--times", default=1, show_default=True, help="With --sentences: how often each runs, for the median.")
def mutants(wanted, path, jobs, shape, sentences, typical, signatures, misconceptions, times):
    """Run every wrong solution of a lab through the real grader, and show what each claim of its checks catches."""
    from tqdm import tqdm

    try:
        known = labs()
    except FileNotFoundError as error:
        raise click.ClickException(str(error)) from None
    if wanted is not None and wanted not in known:
        raise click.BadParameter(f"{wanted!r} has no wrong solutions; there is {', '.join(known)}", param_hint="--lab")
    if signatures or misconceptions:
        _name_mistakes(known if wanted is None else [wanted], signatures, misconceptions)
        return
    if sentences:
        _show_sentences(known if wanted is None else [wanted], path, typical, times, shape)
        return
    rows = []
    try:
        for lab in known if wanted is None else [wanted]:
            tables, rows_of_lab = {}, run(lab, jobs=jobs, shape=shape)
            for row in tqdm(rows_of_lab, total=2 + len(files(lab)), desc=lab, unit="solution", file=sys.stderr):
                rows.append(row)
                click.echo(report(row))
                if row.outcomes:
                    tables[row.name] = row.outcomes
            if tables:
                click.echo(catches.report(tables))
    finally:  # also when interrupted: the rows so far
        if path is not None:
            rows.sort(key=lambda row: (row.lab, row.name not in (REFERENCE, UNTOUCHED), row.name))
            path.write_text(json.dumps([row.as_data() for row in rows], indent=1) + "\n")
    wrong = [row.name for row in rows if not row.caught]
    if wrong:
        raise click.ClickException(f"{len(wrong)} of {len(rows)} did not come out as they must: {', '.join(wrong)}")


def _name_mistakes(labs, collects, measures):
    from ringzero.grading import misconceptions, signatures

    for lab in labs if collects else []:
        for name in signatures.collect(lab, files(lab)):
            click.echo(f"{lab}  {name}")
    if measures:
        click.echo(misconceptions.report())


def _show_sentences(labs, path, only_typical, times, shape):
    from ringzero.grading import sentences

    typical, rows = sentences.typical(), []
    try:
        for lab in labs:
            paths = [path for name, path in files(lab).items() if not only_typical or (lab, name) in typical]
            for row in sentences.said(lab, paths, times, shape):
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
