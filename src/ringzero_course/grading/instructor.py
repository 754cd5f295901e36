"""An instructor's commands: ``ringzero release``, ``collect``, ``grade`` and ``grades``, each with a lab's name."""

import re
import subprocess
import sys
from pathlib import Path

import click

from ringzero_course.grading import exports, items


def course_of(lab):
    """The repository's course, if ``lab`` is one of its labs. Else a UsageError that names them."""
    from ringzero_course.grading import build_labs, course

    try:
        top = course.repository()
    except FileNotFoundError as error:
        raise click.UsageError(str(error)) from None
    labs = build_labs.labs(top)
    if lab not in labs:
        raise click.UsageError(f"there is no lab {lab!r}; the labs are {', '.join(labs)}")
    return course.Course(top)


@click.command()
@click.argument("labs", metavar="LAB...", nargs=-1, required=True)
def release(labs):
    """Make a lab ready: the notebook to hand out, and its cells in the gradebook."""
    from ringzero_course.grading import build_labs

    for lab, course in [(lab, course_of(lab)) for lab in labs]:
        course.hand_out(lab, build_labs.source_notebook(lab))
        click.echo(f"{lab} is released.")
        click.echo(f"  hand out     {shown(course.root / 'release' / lab / f'{lab}.ipynb')}")
        click.echo(f"  collect as   {shown(course.root / 'submitted')}/STUDENT/{lab}/{lab}.ipynb")
        click.echo(f"  then         nbgrader autograde {lab}; ringzero grades {lab}; nbgrader generate_feedback {lab}")


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", metavar="LAB [--CLASS.SETTING=VALUE]...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--jobs", type=click.IntRange(1), help="Submissions to execute at once.  [default: 1]")
@click.option("--scheduler", metavar="URL", help="Have the workers of this Dask scheduler execute them instead.")
@click.option("--student", help="Only this student.  [default: all]")
@click.option("--force", is_flag=True, help="Grade again what is graded.")
def grade(words, jobs, scheduler, student, force):
    """Grade what was handed in for LAB, as `nbgrader autograde LAB` does, on more processors or machines.

    Its settings are those of `nbgrader autograde`, too, such as --ExecuteWithPapermill.sandbox=False.
    """
    settings = [word for word in words if re.match(r"--[A-Z]\w*\.\w+=", word)]
    lab, *others = [word for word in words if word not in settings] or [""]
    for word in [lab, *others]:
        if word.startswith("-"):
            raise click.UsageError(f"no such option: {word}. A setting has the form --CLASS.SETTING=VALUE")
    if others:
        raise click.UsageError(f"one lab at a time, and {' '.join([lab, *others])} is more")
    course = course_of(lab)
    if scheduler and jobs is not None:
        raise click.UsageError(
            f"--jobs {jobs} is for this machine; with --scheduler its workers say how many there are"
        )
    given = {"--student": student, "--CourseAutograde.jobs": jobs, "--CourseAutograde.scheduler": scheduler}
    words = [f"{name}={value}" for name, value in given.items() if value is not None]  # others may be configured
    words += ["--force"] if force else []
    command = [sys.executable, "-m", "nbgrader", "autograde", lab, *words, *settings]
    sys.exit(subprocess.run(command, cwd=course.top).returncode)


@click.command()
@click.argument("lab")
@click.option("--csv", "file", type=click.File("w"), help="Write a line for each student, too.")
@click.option("--canvas", type=click.File("w"), help="Write a file that Canvas's gradebook imports, too.")
@click.option("--items", "with_items", is_flag=True, help="Print how each part of the lab went in the class, too.")
def grades(lab, file, canvas, with_items):
    """Print the class's grades for LAB, and who needs a look and why; write the same as an HTML page."""
    course = course_of(lab)
    handed_in = course.handed_in(lab)
    if not handed_in:
        raise click.UsageError(f"nobody has handed in {lab}: there is no {shown(course.root)}/submitted/STUDENT/{lab}")
    click.echo(course.summary(lab))
    graded = course.grades(lab)
    if with_items:
        click.echo(items.as_text(course.parts(lab, graded)))
    click.echo(f"report: {shown(course.report_of(lab))}")
    if file is not None:
        exports.write_csv(file, graded, handed_in)
    if canvas is not None:
        exports.write_canvas(canvas, lab, graded)


@click.command()
def seal():
    """Give the course a secret, from which the numbers of hidden cases follow. The repository's are public."""
    from ringzero_course.grading import course
    from ringzero_course.grading import seal as seals

    try:
        path = seals.make(course.Course(course.repository()).root)
    except FileExistsError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"Hidden cases follow from {shown(path)} from now on. Keep it safe, and show it to nobody.")


def shown(path):
    """The path from here, where it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
