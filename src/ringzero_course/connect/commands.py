"""The commands ``ringzero collect``, ``gradescope``, ``autograder``, ``quiz`` and ``similar``."""

from pathlib import Path

import click

from ringzero_course.grading.instructor import course_of, shown
from ringzero_course.grading.readable import in_one_line


@click.command()
@click.argument("lab")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
def collect(lab, file):
    """Take the notebooks for LAB out of FILE: a zip file from Canvas or Moodle, or one with a folder a student."""
    from ringzero_course.connect.collect import NotAZipError, notebooks

    course = course_of(lab)
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
        late = f"; late, says Canvas: when, belongs in {shown(place.with_name('timestamp.txt'))}" if each.late else ""
        click.echo(in_one_line(f"{student}: {each.path}{' (as before)' if same else ''}{late}"))
    for why in left_out:
        click.echo(in_one_line(f"left out: {why}"))
    click.echo(f"{len(found)} collected. Then: nbgrader autograde {lab}")


@click.command()
@click.argument("lab")
@click.option("--into", "file", type=click.Path(dir_okay=False, path_type=Path), help="[default: LAB_gradescope.zip]")
@click.option("--unsandboxed", is_flag=True, help="Trust each submission with the machine and with its own score.")
def gradescope(lab, file, unsandboxed):
    """Write the zip file that Gradescope takes as LAB's autograder."""
    from ringzero_course.connect.gradescope import write_zip

    course_of(lab)
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
    from ringzero_course.connect import github_actions

    course_of(lab)
    into = into or Path(f"{lab}_github")
    if into.exists() and any(into.iterdir()):
        raise click.UsageError(f"{into} is not empty; name a new folder")
    github_actions.write(lab, grader, into)
    click.echo(
        f"{into}/grader   push this to the private repository {grader}. It holds the solutions: no student reads it."
    )
    click.echo(f"{into}/student  copy this into the repository that students start from.")


@click.command()
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), default=Path("quiz"), show_default=True)
def quiz(into):
    """Write the book's quick checks as quizzes: a zip file for Canvas (QTI 1.2) and a text for Moodle (GIFT)."""
    from ringzero_course.connect import quiz
    from ringzero_course.grading.build_labs import repository

    try:
        chapters = quiz.write(repository() / "book", repository() / "_build/jupyter_execute", into)
    except quiz.NotBuiltError as error:
        raise click.UsageError(str(error)) from None
    count = sum(map(len, chapters.values()))
    click.echo(f"{count} questions of {len(chapters)} chapters, each with its answer as feedback.")
    click.echo(f"{into / quiz.CANVAS}   Canvas: Settings, Import Course Content, QTI .zip file")
    click.echo(f"{into / quiz.MOODLE}  Moodle: Question bank, Import, GIFT format")


@click.command()
@click.argument("lab")
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), required=True, help="A new folder.")
def similar(lab, into):
    """Write LAB's solutions of the class as plain files, which Dolos and JPlag compare."""
    from ringzero_course.connect import similar

    course = course_of(lab)
    if into.exists() and any(into.iterdir()):
        raise click.UsageError(f"{into} is not empty; name a new folder")
    names, left_out = similar.export(lab, course.root / "submitted", into)
    for why in left_out:
        click.echo(f"left out: {why}")
    click.echo(f"{len(names)} solutions in {into}. Then one of:")
    click.echo(f"  (cd {into} && zip -r solutions.zip info.csv solutions) and dolos run -l python {into}/solutions.zip")
    click.echo(f"  java -jar jplag.jar -l python3 -bc {into / similar.TEMPLATE} {into / 'solutions'}")
