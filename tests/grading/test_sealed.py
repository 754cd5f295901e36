"""A sealed course: hidden cases follow from the instructor's secret; what students see is as it was handed out."""

import linecache
import shutil

import pytest
from click.testing import CliRunner

from ringzero import cli
from ringzero_course.authoring import submission
from ringzero_course.boxes import sandbox
from ringzero_course.grading import build_labs, fingerprint, seal
from ringzero_course.grading import course as courses
from ringzero_course.lab import Check, hidden
from ringzero_course.lab.subjects import prices


def test_a_secret_is_made_once_and_regrades(tmp_path, monkeypatch):
    course = courses.Course(tmp_path)
    monkeypatch.setattr(courses, "Course", lambda top: course)
    assert seal.of(course.root) == ""
    done = CliRunner().invoke(cli.main, ["seal"])
    assert done.exit_code == 0, done.output
    first = seal.of(course.root)
    assert len(first) == 64
    assert (course.root / seal.SECRET).stat().st_mode & 0o77 == 0
    assert (course.root / seal.SECRET).read_text() not in done.output
    again = CliRunner().invoke(cli.main, ["seal"])
    assert again.exit_code == 2
    assert "is there already" in again.output
    assert seal.of(course.root) == first
    before, after = (fingerprint.fingerprint(tmp_path, [], {"seal": each}) for each in ("", first))
    assert fingerprint.differing(before, after) == ["the parameters"]


def drawn(secret):
    """The numbers of ranks in all cases of a specification."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hidden, "secret", secret)
        check = Check("tree_cost", points=2, world_size=4)
        check.meets(prices.tree_cost)
        check.hidden_cases()
    return [run.case.args[0] for run in check._runs]


def test_a_specification_draws_its_hidden_cases_from_the_secret():
    own, one, again = drawn(""), drawn("one"), drawn("one")
    assert own[:7] == one[:7] == [2, 8, 1, 3, 5, 6, 1000]
    assert own[7:] != one[7:] == again[7:]


CELL = """
check = Check("all_reduce", points=1, world_size=4)
shown = check.run(numel=400)
### BEGIN HIDDEN TESTS
unseen = check.run(numel=400)
### END HIDDEN TESTS
"""


def test_numbers_of_hidden_tensors_follow_from_the_secret(monkeypatch):
    linecache.cache["<cell>"] = len(CELL), None, CELL.splitlines(keepends=True), "<cell>"
    seeds = []
    for secret in ("", "one"):
        monkeypatch.setattr(hidden, "secret", secret)
        names = {"__name__": "__main__", "Check": Check}
        exec(compile(CELL, "<cell>", "exec"), names)
        seeds.append([names[name].case.seed for name in ("shown", "unseen")])
    assert seeds[0][0] == seeds[1][0]
    assert seeds[0][1] != seeds[1][1]


KNOWS_THE_SOURCE = f"""def tree_cost(n):
    depth = {{each: len(bin(each - 1)) - 2 if each > 1 else 0 for each in {drawn("")}}}[n]
    return 2 * depth, 2.0 * depth"""


@pytest.mark.skipif(sandbox.missing_ability() is not None, reason="needs a sandbox; see ringzero doctor")
def test_who_knows_the_public_cases_alone_loses_in_a_sealed_course(tmp_path):
    lab = "03_cost_models"
    shutil.copy(courses.repository() / courses.CONFIG, tmp_path)
    course = courses.Course(tmp_path, sandboxed=True)
    course.hand_out(lab, build_labs.source_notebook(lab))
    course.submit("right", lab, submission.submission(lab))
    course.submit("knows", lab, submission.submission(lab, {"tree_cost": KNOWS_THE_SOURCE}))
    assert course.autograde(lab, "knows") == 0
    assert course.grade_of("knows", lab).cells["test_tree_cost"] == (2, 2)
    seal.make(course.root)
    assert course.autograde(lab) == 0
    assert course.grade_of("knows", lab).cells["test_tree_cost"][0] < 2
    right = course.grade_of("right", lab)
    assert {name for name, (got, most) in right.cells.items() if got < most} == set(right.manual)
