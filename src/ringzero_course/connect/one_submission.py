"""Grade one submission where there is no course: what an autograder of Gradescope or GitHub runs on its machine.

``write_bundle`` packs what such a machine needs, ``grade`` grades there. What a student is told of hidden tests is what
is on the feedback page: nothing.
"""

import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import nbformat

from ringzero.processes import durable
from ringzero_course.grading import course as courses
from ringzero_course.grading import feedback, seal, verdict

FILES = ("Makefile", "README.md", "LICENSE", "pyproject.toml", "requirements.txt", "constraints.txt", courses.CONFIG)


class NotGradedError(RuntimeError):
    """A fault of the grader: there is no score. The message is for the instructor."""


@dataclass(frozen=True)
class Graded:
    """``headline``, ``sentences`` and ``parts`` are those of the feedback page; ``largest`` is the score of a right
    solution, with what a person still grades."""

    score: float
    largest: float
    seconds: float
    headline: str
    sentences: list[str]
    parts: list[feedback.Part]


def bundle(lab: str) -> dict[str, Path]:
    """``{name: file}`` of what grades ``lab``: this package, the lab's source, the course's secret if it has one."""
    top = courses.repository()
    package = [path for path in (top / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    paths = [*(top / name for name in FILES), top / "solutions" / f"{lab}.py", *package]
    secret = courses.Course(top).root / seal.SECRET
    if secret.exists():
        paths.append(secret)
    return {str(path.relative_to(top)): path for path in paths if ".egg-info" not in str(path)}


def write_zip(lab: str, file: Path, scripts: dict[str, str]) -> None:
    """The bundle as a zip file, with these texts beside it as programs."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in bundle(lab).items():
            archive.write(path, name)
        for name, text in scripts.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, text)


def grade(lab: str, submission: Path, sandboxed: bool) -> Graded:
    """Grade the notebook in the folder ``submission``, as the course does. Raises NotGradedError."""
    from ringzero_course.grading import build_labs

    with tempfile.TemporaryDirectory(prefix="ringzero-course-") as folder:
        course = courses.Course(Path(folder), sandboxed)
        (course.top / courses.CONFIG).write_text((courses.repository() / courses.CONFIG).read_text())
        secret = courses.Course(courses.repository()).root / seal.SECRET
        if secret.exists():
            course.root.mkdir()
            durable.write(course.root / seal.SECRET, secret.read_text())
        course.hand_out(lab, build_labs.source_notebook(lab))
        content, name = _notebook_in(submission, lab)
        course.submit("someone", lab, content, name)
        course.autograde(lab)
        try:
            found = course.grade_of("someone", lab)
        except RuntimeError as error:
            raise NotGradedError(str(error)) from None
        if found.verdict.kind == verdict.GRADER:
            raise NotGradedError(str(found.verdict))
        said = _feedback(course, lab)
        return Graded(
            found.score, found.largest, found.verdict.seconds, said["headline"], said["sentences"], said["parts"]
        )


def _notebook_in(folder, lab):
    """The submitted notebook and the name under which it counts: a single one may have any name."""
    found = [path for path in sorted(folder.rglob("*.ipynb")) if path.is_file() and not path.is_symlink()]
    found = [path for path in found if ".ipynb_checkpoints" not in path.parts]
    for path in found:
        if path.name == f"{lab}.ipynb" or len(found) == 1:
            return path.read_bytes(), None
    return (found[0].read_bytes(), found[0].name) if found else (b"", "nothing.txt")


def _feedback(course, lab):
    """The feedback page's content."""
    from nbgrader.preprocessors import GetGrades

    folder = course.root / "autograded" / "someone" / lab
    names = {"notebook": lab, "assignment": lab, "student": "someone", "db_url": course.db_url}
    resources = {"nbgrader": names, "metadata": {"path": str(folder)}}
    notebook = nbformat.read(folder / f"{lab}.ipynb", as_version=4)
    for step in (GetGrades(), feedback.ForTheStudent()):
        notebook, resources = step.preprocess(notebook, resources)
    return resources["feedback"]
