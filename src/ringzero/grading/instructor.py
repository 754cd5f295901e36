"""An instructor's commands: ``ringzero release``, ``collect``, ``grade`` and ``grades``, each with a lab's name."""

import re
import subprocess
import sys
from pathlib import Path

import click

from ringzero.grading import exports, items
from ringzero.grading.readable import in_one_line


def _course_of(lab):
    """The repository's course, if ``lab`` is one of its labs. Else a UsageError that names them."""
    from ringzero.grading import build_labs, course

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
    from ringzero.grading import build_labs

    for lab, course in [(lab, _course_of(lab)) for lab in labs]:
        course.hand_out(lab, build_labs.source_notebook(lab))
        click.echo(f"{lab} is released.")
        click.echo(f"  hand out     {_shown(course.root / 'release' / lab / f'{lab}.ipynb')}")
        click.echo(f"  collect as   {_shown(course.root / 'submitted')}/STUDENT/{lab}/{lab}.ipynb")
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
    course = _course_of(lab)
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
    course = _course_of(lab)
    handed_in = course.handed_in(lab)
    if not handed_in:
        raise click.UsageError(f"nobody has handed in {lab}: there is no {_shown(course.root)}/submitted/STUDENT/{lab}")
    click.echo(course.summary(lab))
    graded = course.grades(lab)
    if with_items:
        click.echo(items.as_text(course.parts(lab, graded)))
    click.echo(f"report: {_shown(course.report_of(lab))}")
    if file is not None:
        exports.write_csv(file, graded, handed_in)
    if canvas is not None:
        exports.write_canvas(canvas, lab, graded)


@click.command()
@click.argument("lab")
@click.option("--into", "file", type=click.Path(dir_okay=False, path_type=Path), help="[default: LAB_gradescope.zip]")
@click.option("--unsandboxed", is_flag=True, help="Trust each submission with the machine and with its own score.")
def gradescope(lab, file, unsandboxed):
    """Write the zip file that Gradescope takes as LAB's autograder."""
    from ringzero.grading.gradescope import write_zip

    _course_of(lab)
    file = file or Path(f"{lab}_gradescope.zip")
    write_zip(lab, file, unsandboxed)
    click.echo(
        f"{file}: upload it as the autograder of a programming assignment. It holds the solutions: keep it safe."
    )


@click.command()
@click.argument("lab")
@click.option("--github", "grader", metavar="OWNER/NAME", required=True, help="Your private repository for the grader.")
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), help="[default: LAB_github]")
def autograder(lab, grader, into):
    """Write what grades LAB in GitHub Actions: a private repository's files, and the workflow of students' ones."""
    from ringzero.grading import github_actions

    _course_of(lab)
    into = into or Path(f"{lab}_github")
    if into.exists() and any(into.iterdir()):
        raise click.UsageError(f"{into} is not empty; name a new folder")
    github_actions.write(lab, grader, into)
    click.echo(
        f"{into}/grader   push this to the private repository {grader}. It holds the solutions: no student reads it."
    )
    click.echo(f"{into}/student  copy this into the repository that students start from.")


@click.command()
@click.argument("lab")
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), required=True, help="A new folder.")
def similar(lab, into):
    """Write LAB's solutions of the class as plain files, which Dolos and JPlag compare."""
    from ringzero.grading import similar

    course = _course_of(lab)
    if into.exists() and any(into.iterdir()):
        raise click.UsageError(f"{into} is not empty; name a new folder")
    names, left_out = similar.export(lab, course.root / "submitted", into)
    for why in left_out:
        click.echo(f"left out: {why}")
    click.echo(f"{len(names)} solutions in {into}. Then one of:")
    click.echo(f"  (cd {into} && zip -r solutions.zip info.csv solutions) and dolos run -l python {into}/solutions.zip")
    click.echo(f"  java -jar jplag.jar -l python3 -bc {into / similar.TEMPLATE} {into / 'solutions'}")


@click.command()
def seal():
    """Give the course a secret, from which the numbers of hidden cases follow. The repository's are public."""
    from ringzero.grading import course
    from ringzero.grading import seal as seals

    try:
        path = seals.make(course.Course(course.repository()).root)
    except FileExistsError as error:
        raise click.UsageError(str(error)) from None
    click.echo(f"Hidden cases follow from {_shown(path)} from now on. Keep it safe, and show it to nobody.")


@click.command()
@click.argument("lab")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
def collect(lab, file):
    """Take the notebooks for LAB out of FILE: a zip file from Canvas or Moodle, or one with a folder a student."""
    from ringzero.grading.collect import NotAZipError, notebooks

    course = _course_of(lab)
    try:
        found, left_out = notebooks(file, lab, course.roster())
    except NotAZipError as error:
        raise click.UsageError(str(error)) from None
    course.know({each.number: student for student, each in found.items() if each.number})
    for student, each in sorted(found.items()):
        place = course.root / "submitted" / student / lab / f"{lab}.ipynb"
        same = place.is_file() and place.read_bytes() == each.content
        if not same:
            course.submit(student, lab, each.content)
        late = f"; late, says Canvas: when, belongs in {_shown(place.with_name('timestamp.txt'))}" if each.late else ""
        click.echo(in_one_line(f"{student}: {each.path}{' (as before)' if same else ''}{late}"))
    for why in left_out:
        click.echo(in_one_line(f"left out: {why}"))
    click.echo(f"{len(found)} collected. Then: nbgrader autograde {lab}")


def _shown(path):
    """The path from here, where it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
