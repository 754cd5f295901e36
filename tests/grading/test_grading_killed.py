"""A grader that is killed anywhere is run again, and all ends as if it had been left alone."""

import re
import sys

from tests.grading.test_grading import LAB, command, make_course
from tests.in_turn import number_of_the_commit

QUICK = """
c.Autograde.autograde_preprocessors[0] = "tests.killed_grader.QuickExecution"
c.ExecuteWithPapermill.sandbox = False  # no kernel, no sandbox to look for
"""


def test_a_batch_killed_at_its_steps_and_at_random_moments(tmp_path, pytestconfig):
    course, handed = make_course(tmp_path, QUICK)
    course.submit("ada", LAB, handed.filled(double="double = abs"))
    course.submit("bob", LAB, handed.filled())
    assert command("nbgrader", "autograde", LAB, top=tmp_path).returncode == 0
    assert command("nbgrader", "generate_feedback", LAB, top=tmp_path).returncode == 0
    course.submit("ada", LAB, handed.filled())  # graded again, with her feedback
    course.submit("cyd", LAB, handed.filled(triple="triple = abs"))
    course.submit("dan", LAB, b"not a notebook")
    every, moments = ("1", "40") if pytestconfig.getoption("thorough") else ("16", "3")
    seed = str(number_of_the_commit())
    done = command(sys.executable, "-m", "tests.killed_grader", str(tmp_path), every, moments, seed, top=tmp_path)
    assert done.returncode == 0, done.stderr
    *differences, summary = done.stdout.splitlines()
    assert differences == []
    kills, steps, students = map(int, re.findall(r"\d+", summary))
    assert kills > steps // int(every)
    assert steps > 50
    assert students == 4
