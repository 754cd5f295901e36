"""A gradebook that another program holds, and a disk that is full: said in words, and nothing is lost."""

import json
import shutil
import sqlite3
import sys

import pytest

from tests.grading.test_grading import LAB, command, make_course
from tests.grading.test_grading_killed import QUICK
from tests.killed_grader import held

STUDENTS = 8


@pytest.fixture
def prepared(tmp_path):
    """A course of eight that is not graded, and what it holds when it is."""
    (tmp_path / "course_of_eight").mkdir()
    course, handed = make_course(tmp_path / "course_of_eight", QUICK)
    for number in range(STUDENTS):
        course.submit(f"s{number}", LAB, handed.filled())
    shutil.copytree(course.top, tmp_path / "alone")
    assert command("nbgrader", "autograde", LAB, top=tmp_path / "alone").returncode == 0
    return course, held(type(course)(tmp_path / "alone"))


def test_a_gradebook_that_another_program_holds(prepared):
    course, expected = prepared
    other = sqlite3.connect(course.root / "gradebook.db", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    done = command("nbgrader", "autograde", LAB, top=course.top)
    other.execute("ROLLBACK")
    other.close()
    assert done.returncode == 1
    assert "The gradebook cannot be used: database is locked. If another program is writing to it" in done.stderr
    assert "Traceback" not in done.stderr
    assert command("nbgrader", "autograde", LAB, top=course.top).returncode == 0
    assert held(course) == expected


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap, for a small disk")
def test_a_disk_that_is_full(prepared, tmp_path):
    course, expected = prepared
    (tmp_path / "small").mkdir()
    own_disk = ["bwrap", "--dev-bind", "/", "/", "--size", str(10_000_000), "--tmpfs", str(tmp_path / "small")]
    words = [sys.executable, "-m", "tests.full_disk", str(tmp_path / "small"), str(course.top)]
    done = command(*own_disk, *words, top=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    *full, last = found["said"]
    stopped = [text for status, text in full if status == 1 and "course is full (" in text and "Make room." in text]
    assert len(stopped) >= 3
    assert stopped == [text for status, text in full if status != 0]
    assert last[0] == 0, last[1]
    assert found["held"] == repr(expected)
