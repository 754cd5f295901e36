"""What is graded again and what is not, what a regrade says, and that one grader works on a course at a time."""

import fcntl
import json
import subprocess
import sys

import pytest

from ringzero_course.grading import fingerprint, last_grading, verdict
from ringzero_course.grading.last_grading import LastGrading, Outcome
from tests.grading.test_grading import FULL, LAB, command, make_course, scores


def written(course, student):
    return (course.root / "autograded" / student / LAB / verdict.FILENAME).stat().st_mtime_ns


@pytest.fixture(scope="module")
def regraded(tmp_path_factory):
    """Three are graded and have feedback; then one hands in again, and all are graded again, without ``--force``."""
    top = tmp_path_factory.mktemp("again")
    course, handed = make_course(top)
    course.submit("ada", LAB, handed.filled(double="double = abs"))
    course.submit("bob", LAB, handed.filled())
    first = command("nbgrader", "autograde", LAB, top=top)
    assert first.returncode == 0, first.stderr
    assert command("nbgrader", "generate_feedback", LAB, top=top).returncode == 0
    before = written(course, "bob")
    course.submit("ada", LAB, handed.filled())
    (course.root / "submitted" / "bob" / LAB / "timestamp.txt").write_text("2026-11-01 12:00:00 UTC")
    second = command("nbgrader", "autograde", LAB, top=top)
    assert second.returncode == 0, second.stderr
    return course, handed, second, before


def test_a_changed_notebook_is_graded_again_without_a_timestamp(regraded):
    course, _, done, _ = regraded
    assert scores(course.grades(LAB)["ada"], FULL) == FULL
    said = "ada: 3 → 5 of 6 (test_double: 0 → 2); graded again because the submission changed"
    assert said in done.stderr


def test_an_unchanged_one_is_not_even_with_a_new_timestamp(regraded):
    course, _, done, before = regraded
    assert written(course, "bob") == before
    assert "Grading bob again" not in done.stderr


def test_the_feedback_of_a_regraded_student_is_new(regraded):
    course, *_ = regraded
    page = course.root / "feedback" / "ada" / LAB / f"{LAB}.html"
    assert "double = abs" not in page.read_text()


def test_another_release_grades_all_again(regraded):
    course, *_ = regraded
    path = course.root / "source" / LAB / f"{LAB}.ipynb"
    path.write_text(path.read_text().replace("points + 1.0", "points + 0.5"))
    assert course.nbgrader("generate_assignment", LAB, "--force").returncode == 0
    done = command("nbgrader", "autograde", LAB, top=course.top)
    assert done.returncode == 0, done.stderr
    for name in ("ada", "bob"):
        assert f"{name}: 5 → 4.5 of 6 (test_triple: 3 → 2.5); graded again because the release changed" in done.stderr


def test_a_second_grader_waits_or_says_who_is_at_work(regraded):
    course, handed, *_ = regraded
    course.submit("cyd", LAB, handed.filled())
    with open(course.root / ".grading", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("process 7 on elsewhere")
        lock.flush()
        done = command("nbgrader", "autograde", LAB, "--CourseAutograde.wait=False", top=course.top)
        assert done.returncode == 1
        assert "another grader is at work" in done.stderr
        assert "process 7 on elsewhere" in done.stderr
        assert not (course.root / "autograded" / "cyd").exists()
        words = [sys.executable, "-m", "nbgrader", "autograde", LAB]
        two = [
            subprocess.Popen(words, cwd=course.top, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        for each in two:
            while "Waiting for its end" not in each.stderr.readline():
                assert each.poll() is None
        assert not (course.root / "autograded" / "cyd").exists()
    said = [each.communicate()[1] for each in two]
    assert [each.returncode for each in two] == [0, 0]
    lines = [line for each in said for line in each.splitlines() if "  cyd  " in line]
    assert sorted("(as before)" in line for line in lines) == [False, True]  # the second found the verdict
    assert scores(course.grades(LAB)["cyd"], {"test_double": 2}) == {"test_double": 2}


def test_a_fingerprint_names_what_differs(tmp_path):
    (tmp_path / "a.ipynb").write_text("1")
    first = fingerprint.fingerprint(tmp_path, [{"source": "x"}], {"WORLD_SIZE": 4})
    (tmp_path / "timestamp.txt").write_text("2026-11-01")
    assert fingerprint.fingerprint(tmp_path, [{"source": "x"}], {"WORLD_SIZE": 4}) == first
    (tmp_path / "a.ipynb").write_text("2")
    second = fingerprint.fingerprint(tmp_path, [{"source": "y"}], {"WORLD_SIZE": 2})
    assert fingerprint.differing(first, second) == ["the submission", "the release", "the parameters"]


def test_links_in_a_submission_are_not_followed(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").write_text("1")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    first = fingerprint.of_folder(tmp_path / "in")
    (tmp_path / "out").write_text("2")
    assert fingerprint.of_folder(tmp_path / "in") == first


def test_what_is_remembered_comes_back_whole_or_not_at_all(tmp_path):
    path = last_grading.path_of(tmp_path, "ada", LAB)
    assert last_grading.read(path) is None
    last = LastGrading({"a": "b"}, Outcome({"t": [1.0, 2.0]}, "ok"), ["t"], Outcome({}, "limit"), ["a"], False)
    last_grading.write(last, path)
    assert last_grading.read(path) == last
    path.write_text(json.dumps({"outcome": 3}))
    assert last_grading.read(path) is None
