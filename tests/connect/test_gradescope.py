"""A lab behind Gradescope: its folders, laid out as its documentation says, and the score that the course gives."""

import json
import shutil
import subprocess
import sys
import zipfile

import nbformat
import pytest

from ringzero_course.authoring import submission
from ringzero_course.boxes import sandbox
from ringzero_course.connect import gradescope
from ringzero_course.grading import course as courses
from tests.grading.test_grading import TOP

LAB = "03_cost_models"
BOXED = sandbox.missing_ability() is None
HALF = {"ring_cost": "def ring_cost(n):\n    return 1, 1.0", "best_chunks": "def best_chunks(n, size, alpha, beta:"}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """``/autograder/source``, but with this environment in place of what ``setup.sh`` installs."""
    folder = tmp_path_factory.mktemp("autograder")
    gradescope.write_zip(LAB, folder / "autograder.zip", unsandboxed=not BOXED)
    with zipfile.ZipFile(folder / "autograder.zip") as archive:
        archive.extractall(folder / "source")
        assert archive.getinfo("run_autograder").external_attr >> 16 == 0o755
    return folder


def run(unpacked, tmp_path, content, name=f"{LAB}.ipynb"):
    (tmp_path / "submission").mkdir()
    (tmp_path / "results").mkdir()
    (tmp_path / "submission" / name).write_bytes(content)
    line = (unpacked / "source" / "run_autograder").read_text().splitlines()[-1]
    words = line.replace("/autograder/submission", str(tmp_path / "submission"))
    words = words.replace("/autograder/results", str(tmp_path / "results")).split()[1:]
    environment = {"PYTHONPATH": str(unpacked / "source" / "src"), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, *words], cwd=unpacked / "source", env=environment, capture_output=True, text=True, check=False
    )
    file = tmp_path / "results" / "results.json"
    return done, json.loads(file.read_text()) if file.exists() else None


@pytest.mark.parametrize("which", ["half", "broken"])
def test_the_score_is_the_courses(unpacked, tmp_path, which):
    notebook = submission.submission(LAB, HALF)
    content = nbformat.writes(notebook).encode() if which == "half" else b"not a notebook"
    done, found = run(unpacked, tmp_path, content, "renamed by the student.ipynb")
    assert done.returncode == 0, done.stderr
    assert sum(test["score"] for test in found["tests"]) == pytest.approx(found["score"])
    if which == "half":
        here = courses.grade(content, LAB, sandboxed=BOXED)
        assert found["score"] == here.score
        assert 0 < here.score < here.largest - 6
        assert "best_chunks" in found["output"]
        by_name = {test["name"]: test for test in found["tests"]}
        assert by_name["ring_cost"]["score"] < by_name["ring_cost"]["max_score"]
        assert "ring_cost" not in by_name["tree_cost"]["output"]
    else:
        assert found["score"] == 0
        assert "not valid JSON" in found["output"]


def test_a_fault_of_the_grader_is_no_score(unpacked, tmp_path):
    source = unpacked / "source" / "solutions" / f"{LAB}.py"
    shutil.copy(source, tmp_path / "kept")
    try:
        with open(unpacked / "source" / courses.CONFIG, "a") as config:
            config.write("\nimport ringzero_course.grading.run_notebook as e\ne.run = None\n")
        done, found = run(unpacked, tmp_path, nbformat.writes(submission.submission(LAB)).encode())
    finally:
        shutil.copy(TOP / courses.CONFIG, unpacked / "source")
    assert done.returncode == 1
    assert found is None
    assert "Not graded, and no score was given" in done.stderr
