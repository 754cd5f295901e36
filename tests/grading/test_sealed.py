"""A sealed course: hidden cases follow from the instructor's secret; what students see is as it was handed out."""

import linecache
import shutil

import pytest
from click.testing import CliRunner

from ringzero import cli
from ringzero.grading import build_labs, fingerprint, seal, submission
from ringzero.grading import course as courses
from ringzero.lab import sealed
from ringzero.lab.harness import training
from ringzero.processes import sandbox

CELL = """
check = Check("broadcast", points=1, world_size=4)
shown = check.run(numel=400, root=1)
train = Check("DDP", points=1, world_size=4, harness=training.train)
shown_model = train.run(seed=1, hidden=(11, 5, 13))
### BEGIN HIDDEN TESTS
whole = check.run(numel=400, root=1)
rest = check.run(numel=403, root=1)
model = train.run(seed=1, hidden=(11, 5, 13))
### END HIDDEN TESTS
"""


@pytest.fixture
def declared():
    """``declared(seal)``: the runs of ``CELL``, a cell of a notebook, by name."""

    def declare(name):
        from ringzero.lab import Check

        file = f"<cell sealed by {name!r}>"
        linecache.cache[file] = len(CELL), None, CELL.splitlines(keepends=True), file
        names = {"__name__": "__main__", "Check": Check, "training": training}
        sealed.use(name)
        exec(compile(CELL, file, "exec"), names)
        return names

    yield declare
    sealed.use("")


def case(run):
    return run.case.numel, run.case.seed, run.case.options


def test_hidden_runs_alone_have_other_numbers(declared):
    own, one, again, other = (declared(name) for name in ("", "one", "one", "another"))
    for name in ("shown", "shown_model"):
        assert case(own[name]) == case(one[name]) == case(other[name])
    for name in ("whole", "rest", "model"):
        assert case(one[name]) == case(again[name])
        assert len({str(case(each[name])) for each in (own, one, other)}) == 3
    assert [one[name].numel % 4 for name in ("whole", "rest")] == [0, 3]
    assert one["whole"].numel > 400
    roots = {declared(str(number))["whole"].option("root") for number in range(20)}
    assert roots == {0, 1, 2, 3}


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


KNOWS_THE_SOURCE = """def tree_cost(n):
    public = [1, 2, 3, 5, 6, 8, 9, 1000, *range(7, 34), 64, 65, 1024, 1025, 2**49 + 1]
    depth = {each: len(bin(each - 1)) - 2 if each > 1 else 0 for each in public}[n]
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
