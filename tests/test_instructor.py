"""``ringzero release`` and ``ringzero grades``: what they do, and what they say when something is missing."""

import csv
import shutil

import pytest
from click.testing import CliRunner

from ringzero import cli
from ringzero.grading import course as courses
from ringzero.grading import submission
from ringzero.grading.verdict import Verdict

LAB = "03_cost_models"


def ringzero(*words):
    done = CliRunner().invoke(cli.main, words)
    return done.exit_code, done.output


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    top = tmp_path_factory.mktemp("instructor")
    shutil.copy(courses.repository() / courses.CONFIG, top)
    return courses.Course(top)


@pytest.fixture(autouse=True)
def in_place_of_the_repositorys(course, monkeypatch):
    monkeypatch.setattr(courses, "Course", lambda top: course)


def test_a_lab_that_does_not_exist_is_named_beside_those_that_do():
    for command in ("release", "grades"):
        status, said = ringzero(command, "03_cost")
        assert status == 2
        assert "there is no lab '03_cost'; the labs are 01_collectives, " in said


def test_grading_what_is_not_released_says_so(course):
    course.submit("ada", LAB, submission.submission(LAB))
    done = course.nbgrader("autograde", LAB)
    assert done.returncode == 1
    assert f"{LAB} is not released in this course. Do that first: ringzero release {LAB}" in done.stderr
    assert not (course.root / "autograded" / "ada").exists()


def test_from_release_to_a_table(course, tmp_path, monkeypatch):
    status, said = ringzero("release", LAB)
    assert status == 0, said
    handed_out = course.root / "release" / LAB / f"{LAB}.ipynb"
    assert str(handed_out) in said
    assert "### BEGIN HIDDEN TESTS" not in handed_out.read_text()

    assert "needs a person: ada: not graded: run nbgrader autograde" in ringzero("grades", LAB)[1]
    grade = courses.Grade({"test_count": (2.0, 3.0), "a_plan": (0.0, 3.0)}, Verdict("ok"), ("a_plan",))
    monkeypatch.setattr(type(course), "grades", lambda *_: {"ada": grade})
    course.submit("bob", LAB, b"not a notebook")
    file = tmp_path / "grades.csv"
    status, said = ringzero("grades", LAB, "--csv", str(file))
    assert status == 0, said
    assert "needs a person: ada: a_plan waits for a grade" in said
    assert "needs a person: bob: not graded" in said
    assert list(csv.reader(file.read_text().splitlines())) == [
        ["student", "score", "out of", "waits for a person", "verdict"],
        ["ada", "2.0", "6.0", "a_plan", "ok"],
        ["bob", "", "", "", "not graded"],
    ]


def test_nobody_has_handed_in():
    assert "nobody has handed in 05_memory" in ringzero("grades", "05_memory")[1]
