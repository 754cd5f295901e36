"""A lab behind Gradescope, by the same grader: the zip file it takes, and what its machine runs for a submission.

Gradescope unpacks the zip file into ``/autograder/source``, runs ``setup.sh`` once, and for each submission
``run_autograder``, which must write ``/autograder/results/results.json`` (its format: gradescope-autograders
.readthedocs.io/en/latest/specs). What students see of hidden tests is what they see on the feedback page: nothing.
"""

import json
import sys
import tempfile
import zipfile
from pathlib import Path

import nbformat

from ringzero.grading import course as courses
from ringzero.grading import durable, feedback, seal, verdict

SETUP = """#!/usr/bin/env bash
set -euo pipefail
cd /autograder/source
apt-get update
apt-get install -y python3 python3-venv bubblewrap
make install
"""
RUN = """#!/usr/bin/env bash
cd /autograder/source
.venv/bin/python -m ringzero.grading.gradescope {lab} /autograder/submission /autograder/results {options}
"""
FILES = ("Makefile", "README.md", "LICENSE", "pyproject.toml", "requirements.txt", "constraints.txt", courses.CONFIG)


class NotGradedError(RuntimeError):
    """A fault of the grader: there is no score. The message is for the instructor."""


def write_zip(lab: str, file: Path, unsandboxed: bool) -> None:
    """The autograder of ``lab`` with all that it needs: this package, the lab's source, the course's secret if any."""
    top = courses.repository()
    package = [path for path in (top / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    paths = [*(top / name for name in FILES), top / "solutions" / f"{lab}.py", *package]
    secret = courses.Course(top).root / seal.SECRET
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in paths:
            if ".egg-info" not in str(path):
                archive.write(path, path.relative_to(top))
        if secret.exists():
            archive.write(secret, secret.relative_to(top))
        options = "--unsandboxed" if unsandboxed else ""
        for name, text in (("setup.sh", SETUP), ("run_autograder", RUN.format(lab=lab, options=options))):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, text)


def results(lab: str, submission: Path, sandboxed: bool) -> dict:
    """What ``results.json`` holds for the files in the folder ``submission``. Raises NotGradedError."""
    from ringzero.grading import build_labs

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
            grade = course.grade_of("someone", lab)
        except RuntimeError as error:
            raise NotGradedError(str(error)) from None
        if grade.verdict.kind == verdict.GRADER:
            raise NotGradedError(str(grade.verdict))
        said = _feedback(course, lab)
        return {
            "score": grade.score,
            "execution_time": round(grade.verdict.seconds),
            "output": "\n\n".join([said["headline"], *said["sentences"]]),
            "stdout_visibility": "hidden",
            "tests": [
                {
                    "name": part.name,
                    "score": part.score,
                    "max_score": part.possible,
                    "output": part.reason,
                    "visibility": "visible",
                }
                for part in said["parts"]
            ],
        }


def _notebook_in(folder, lab):
    """The submitted notebook and the name under which it counts: a single one may have any name."""
    found = [path for path in sorted(folder.rglob("*.ipynb")) if path.is_file() and not path.is_symlink()]
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


def main(arguments=None):
    """Grade, as ``run_autograder`` does. Without a score there is no file, which Gradescope shows as a failed run."""
    lab, submission, into, *options = arguments or sys.argv[1:]
    try:
        found = results(lab, Path(submission), sandboxed="--unsandboxed" not in options)
    except NotGradedError as error:
        print(f"Not graded, and no score was given: {error}", file=sys.stderr)
        return 1
    durable.write(Path(into) / "results.json", json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
