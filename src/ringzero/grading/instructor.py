"""An instructor's commands: ``ringzero release LAB`` and ``ringzero grades LAB``."""

import csv
from pathlib import Path

import click

from ringzero.grading.verdict import NEEDS_A_PERSON


def _course_of(lab):
    """The repository's course, if ``lab`` is one of its labs. Else a UsageError that names them."""
    from ringzero.grading import course

    try:
        top = course.repository()
    except FileNotFoundError as error:
        raise click.UsageError(str(error)) from None
    labs = sorted(path.stem for path in (top / "solutions").glob("[0-9]*.*"))
    if lab not in labs:
        raise click.UsageError(f"there is no lab {lab!r}; the labs are {', '.join(labs)}")
    return course.Course(top)


@click.command()
@click.argument("labs", metavar="LAB...", nargs=-1, required=True)
def release(labs):
    """Make a lab ready: the notebook to hand out, and its cells in the gradebook."""
    from ringzero.grading import build_labs

    for lab, course in [(lab, _course_of(lab)) for lab in labs]:
        course.hand_out(lab, build_labs.source_notebook(lab))
        click.echo(f"{lab} is released.")
        click.echo(f"  hand out     {_shown(course.root / 'release' / lab / f'{lab}.ipynb')}")
        click.echo(f"  collect as   {_shown(course.root / 'submitted')}/STUDENT/{lab}/{lab}.ipynb")
        click.echo(f"  then         nbgrader autograde {lab}; ringzero grades {lab}; nbgrader generate_feedback {lab}")


@click.command()
@click.argument("lab")
@click.option("--csv", "file", type=click.File("w"), help="Write a line for each student, too.")
def grades(lab, file):
    """Print the class's grades for LAB, and who needs a person."""
    from ringzero.grading.course import table

    course = _course_of(lab)
    handed_in = {path.parent.name for path in (course.root / "submitted").glob(f"*/{lab}") if path.is_dir()}
    if not handed_in:
        raise click.UsageError(f"nobody has handed in {lab}: there is no {_shown(course.root)}/submitted/STUDENT/{lab}")
    graded = course.grades(lab)
    if graded:
        click.echo(table(graded, lab))
    for student, why in sorted(_needs_a_person(graded, handed_in).items()):
        click.echo(f"needs a person: {student}: {why}")
    if file is not None:
        _write(file, graded, handed_in)


def _needs_a_person(graded, handed_in):
    """``{student: why}``."""
    needs = dict.fromkeys(handed_in - graded.keys(), "not graded: run nbgrader autograde")
    for student, grade in graded.items():
        reasons = [str(grade.verdict)] if grade.verdict.kind in NEEDS_A_PERSON else []
        reasons += [f"{cell} waits for a grade" for cell in grade.manual]
        if reasons:
            needs[student] = "; ".join(reasons)
    return needs


def _write(file, graded, handed_in):
    """A student who is not graded has no score there: an empty place, and not a 0."""
    rows = csv.writer(file)
    rows.writerow(["student", "score", "out of", "waits for a person", "verdict"])
    for student in sorted(handed_in | graded.keys()):
        grade = graded.get(student)
        if grade is None:
            rows.writerow([student, "", "", "", "not graded"])
        else:
            rows.writerow([student, grade.score, grade.largest, " ".join(grade.manual), grade.verdict])


def _shown(path):
    """The path from here, where it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
