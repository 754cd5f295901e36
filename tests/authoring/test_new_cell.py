"""Adding a graded cell takes what "For contributors" says and nothing else: its four blocks are read from the page."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

TOP = Path(__file__).parents[2]
LAB = "03_cost_models"
SECTION = re.search(r"(?s)## To add a graded cell\n(.*?)\n## ", (TOP / "book" / "for_contributors.md").read_text())[1]
CELL, SPECIFICATION, WRONG, RIGHT = (
    textwrap.dedent(each) for each in re.findall(r"(?s)```python\n(.*?) *```", SECTION)
)


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """A copy of the repository in which that was done."""
    top = tmp_path_factory.mktemp("followed")
    for folder in ("src", "solutions", "tests"):
        shutil.copytree(TOP / folder, top / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("nbgrader_config.py", "pyproject.toml"):
        shutil.copy(TOP / file, top)
    for file, text in (
        (f"solutions/{LAB}.py", CELL),
        ("src/ringzero_course/lab/subjects/prices.py", SPECIFICATION),
        (f"tests/mutants/{LAB}.py", WRONG),
        (f"tests/right/{LAB}/added_up.py", RIGHT),
    ):
        with open(top / file, "a") as opened:
            opened.write(f"\n\n{text}" if opened.tell() else text)
    return top


def python(top, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(top / "src")}
    return subprocess.run([sys.executable, *arguments], cwd=top, env=environment, capture_output=True, text=True)


def test_the_mistake_is_said_and_every_claim_catches_it(followed):
    done = python(followed, "-m", "ringzero.cli", "mutants", "--lab", LAB)
    assert done.returncode == 0, done.stdout + done.stderr
    (said,) = re.findall(r"(?s)all_to_all_keeps_nothing.*?says +([^\n]*)", done.stdout)
    assert "the time in seconds" in said


def test_both_right_solutions_get_full_marks(followed):
    tests = (
        ["tests/lab/test_labs_right.py", "-k", "added_up"],
        ["tests/lab/test_labs.py", "-k", f"every_point and {LAB}"],
    )
    for arguments in tests:
        done = python(followed, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_students_get_the_cell_without_its_solution(followed):
    done = python(followed, "-m", "ringzero_course.grading.build_labs")
    assert done.returncode == 0, done.stderr
    notebook = (followed / "labs" / f"{LAB}.ipynb").read_text()
    assert "def all_to_all_seconds" in notebook
    assert "(n - 1) * (alpha" not in notebook
    assert "hidden_cases" not in notebook
