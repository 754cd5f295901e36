"""From ``solutions/NN_name.py`` to ``labs/NN_name.ipynb``: what students get, without solutions and hidden tests.

    python -m ringzero_course.grading.build_labs          write every lab
    python -m ringzero_course.grading.build_labs --check  write nothing; exit 1 if a lab is not what its solution gives

The text is read by jupytext, and nbgrader's own GenerateAssignment takes out the regions between its markers. The same
text always gives the same bytes: cells are named after their ``grade_id`` or their place, and hold no output.
"""

import argparse
import difflib
import logging
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

import nbformat

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m ringzero_course.grading.build_labs", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a lab differs from its solution")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the folder that holds solutions/ and labs/")
    options = parser.parse_args(arguments)
    names = labs(options.root)
    if not names:
        print(f"no solutions/*.py in {options.root}; run this in the repository's top folder", file=sys.stderr)
        return 2
    different = 0
    for name in names:
        path = options.root / "labs" / f"{name}.ipynb"
        wanted = nbformat.writes(release_notebook(name, options.root)) + "\n"
        found = path.read_text() if path.exists() else ""
        if wanted == found:
            print(f"{path.relative_to(options.root)} is up to date")
        elif options.check:
            different += 1
            print(f"{path.relative_to(options.root)} is not what solutions/{name}.py gives:")
            changes = difflib.unified_diff(
                found.splitlines(), wanted.splitlines(), "committed", "generated", n=1, lineterm=""
            )
            print("\n".join(list(changes)[:40]))
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(wanted)
            print(f"{path.relative_to(options.root)} written")
    extra = {path.stem for path in (options.root / "labs").glob("*.ipynb")} - set(names)
    for name in sorted(extra):
        different += 1
        print(f"labs/{name}.ipynb has no solutions/{name}.py: write one, or remove the lab")
    if different and options.check:
        print("run `python -m ringzero_course.grading.build_labs` to write the labs anew")
    return 1 if different else 0


def labs(root=None):
    """The labs' names: a lab is what has a solution."""
    return sorted(path.stem for path in ((Path(root) if root else repository()) / "solutions").glob("*.py"))


def source_notebook(lab, root=None, secret=0):
    """The instructor's notebook, with solutions and hidden tests.

    The hidden cases of its checks are drawn by the number ``secret``; by the lab's own where it is 0.
    """
    import jupytext

    path = _solution(lab, root)
    notebook = jupytext.reads(path.read_text(), fmt="py:percent")
    # jupytext's own metadata would pair a student's notebook with a text file.
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    seen = {}
    for index, cell in enumerate(notebook.cells):
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader = _complete(cell.metadata.nbgrader)
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if grade_id in seen and grade_id is not None:
            raise ValueError(f"{path}: cells {seen[grade_id]} and {index} both have the grade_id {grade_id}")
        seen[grade_id] = index
        cell.id = grade_id or f"cell-{index:02d}"
        if secret and cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade"):
            cell.source = with_secret(cell.source, secret)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    nbformat.validate(notebook)
    return notebook


def with_secret(source, secret):
    """The text of a test cell whose hidden cases are drawn by this ``secret``; by the lab's own where it is 0."""
    return (
        f"from ringzero_course.lab import hidden\n\nhidden.secret = {f'numbers {secret}' if secret else ''!r}\n{source}"
    )


def _complete(written):
    """nbgrader's metadata of a cell, from what the text states of it: ``solution``, ``grade`` and ``points`` if any."""
    whole = {"schema_version": 3, "grade": False, "solution": False, "task": False} | dict(written)
    return nbformat.from_dict({"locked": whole["grade"] and not whole["solution"]} | whole)


def release_notebook(lab, root=None):
    """The student's notebook, as ``nbgrader generate_assignment`` makes it from ``source_notebook``."""
    return nbformat.reads(_released(lab, nbformat.writes(source_notebook(lab, root))), as_version=4)


@lru_cache(maxsize=32)
def _released(lab, source):
    """``source`` (JSON) through nbgrader, in a folder that holds nothing else: it would be copied into the release."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory
    from nbgrader.preprocessors import SaveCells
    from traitlets.config import Config

    with tempfile.TemporaryDirectory(prefix="ringzero-release-") as course:
        folder = Path(course) / "source" / lab
        folder.mkdir(parents=True)
        (folder / f"{lab}.ipynb").write_text(source)
        config = Config({"CourseDirectory": {"root": course, "assignment_id": lab}})
        converter = GenerateAssignment(
            coursedir=CourseDirectory(config=config, parent=None), config=config, parent=None
        )
        converter.log = logging.getLogger("ringzero.build_labs")
        converter.log.setLevel(logging.ERROR)
        converter.no_database = True
        converter.preprocessors = [step for step in converter.preprocessors if step is not SaveCells]
        converter.start()
        return (Path(course) / "release" / lab / f"{lab}.ipynb").read_text()


def _solution(lab, root):
    path = (Path(root) if root else repository()) / "solutions" / f"{lab}.py"
    if not path.exists():
        raise FileNotFoundError(f"no lab {lab}: {path} is not there; there is {', '.join(labs(root)) or 'none'}")
    return path


def repository():
    """The repository: the working directory if it has solutions/, else the checkout this package is installed from."""
    here = Path.cwd()
    return here if (here / "solutions").is_dir() else Path(__file__).resolve().parents[3]


def solution_cells(notebook):
    """The cells a student fills in, written answers among them."""
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("solution")]


if __name__ == "__main__":
    sys.exit(main())
