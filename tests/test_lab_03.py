"""Lab 03 as its students and its grader meet it: the reference, the notebook nobody touched, and wrong solutions."""

import re
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

from nbgrader.utils import determine_grade, is_grade

from ringzero.grading import build_labs, submission
from tests.live_notebook import errors, grades, kernel_of, text_of

LAB = "03_cost_models"
MUTANTS = sorted((Path(__file__).parent / "mutants" / LAB).glob("*.py"))
ONE_EACH = {submission.read_wrong_solution(path).caught_by: path for path in reversed(MUTANTS)}
FUNCTIONS = [
    *("count", "ring_cost", "tree_cost", "doubling_cost", "halving_doubling_cost", "crossover", "best_chunks"),
    *("bandwidths", "state_bytes", "least_ranks"),
]
TESTS = [f"test_{name}" for name in FUNCTIONS]


@pytest.fixture(scope="module")
def reference():
    """The instructor's notebook, run from top to bottom; ``reference.cells`` are its cells with outputs."""
    with kernel_of(build_labs.source_notebook(LAB)) as kernel:
        kernel.cells = kernel.run_all()
        yield kernel


def shown_by(reference, words):
    """What the one cell with these words in it shows."""
    (cell,) = (cell for cell in reference.cells.values() if words in cell.source)
    return text_of(cell)


def test_reference_gets_every_point_and_shows_no_error(reference):
    found = grades(reference.cells.values())
    assert list(found) == TESTS
    assert all(score == largest for score, largest in found.values()), found
    for cell in reference.cells.values():
        assert not errors(cell), text_of(cell)
        assert not [output for output in cell.outputs if output.get("name") == "stderr"], text_of(cell)


def test_points_in_the_text_are_those_of_the_cell(reference):
    for cell in reference.notebook.cells:
        if is_grade(cell) and cell.cell_type == "code":
            (stated,) = re.findall(r"Check\(.*points=(\d+)", cell.source)
            assert int(stated) == cell.metadata.nbgrader.points
            assert cell.source.rstrip().endswith("check.score()")


def test_formulas_agree_with_the_counted_schedules(reference):
    table = shown_by(reference, "FORMULAS = {")
    assert table.count("the same") == 24
    assert "COUNTED" not in table


def test_a_wrong_formula_is_seen_beside_the_count(reference):
    (table,) = (name for name, cell in reference.cells.items() if "FORMULAS = {" in cell.source)
    try:
        reference.run("ring_cost", "def ring_cost(n):\n    return n, 2 * (n - 1) / n")
        shown = text_of(reference.run(table))
    finally:
        reference.run("ring_cost")
        reference.run(table)
    assert "COUNTED 6 rounds, 1.5 S" in shown


def test_measured_beside_predicted(reference):
    shown = shown_by(reference, "def measure(")
    assert len(re.findall(r"^ +\d+ +\d+ +\d+   (?:ring|doubling) is faster$", shown, re.MULTILINE)) == 6
    assert len(re.findall(r"alpha -?[\d.]+ µs, beta -?[\d.]+ ns a byte, so they cross at", shown)) == 2


def test_what_the_plans_need(reference):
    shown = shown_by(reference, 'if written("state_bytes", "least_ranks")')
    assert (
        "7.5B   fits from [1, 1, 1, 1] ranks on, stages 0 to 3; on 64 ranks GB a rank: 120, 31.41, 16.64, 1.875"
        in shown
    )
    assert "GPT-3  fits from [None, None, None, 20] ranks on" in shown


def test_untouched_notebook_gets_nothing():
    with kernel_of(build_labs.release_notebook(LAB)) as kernel:
        cells = kernel.run_all()
    found = grades(cells.values())
    assert list(found) == TESTS
    assert all(score == 0 for score, _ in found.values()), found
    for name, cell in cells.items():
        assert not errors(cell), text_of(cell)  # papermill and nbgrader validate get to the end
        if name in TESTS:
            assert f"{name.removeprefix('test_')} is not written yet" in text_of(cell)


@pytest.mark.parametrize("name", TESTS)
def test_wrong_solution_loses_points(reference, name):
    """The first of each test cell; ``ringzero mutants`` runs them all."""
    wrong = submission.read_wrong_solution(ONE_EACH[name])
    try:
        for grade_id, source in wrong.replacements.items():
            assert not errors(reference.run(grade_id, source))
        cell = reference.run(name)
        score, largest = determine_grade(cell)
        assert score < largest, text_of(cell)
        assert not errors(cell)
        assert "FAIL" in text_of(cell)
    finally:
        for grade_id in wrong.replacements:
            reference.run(grade_id)


def test_there_are_enough_wrong_solutions():
    assert len(MUTANTS) >= 12
    assert set(ONE_EACH) == set(TESTS)


def test_one_rank_has_nothing_to_measure(reference):
    (parameters,) = (cell for cell in reference.cells.values() if "parameters" in cell.metadata.get("tags", []))
    (measuring,) = (name for name, cell in reference.cells.items() if "def measure(" in cell.source)
    reference.run(parameters.id, 'WORLD_SIZE = 1\nDEVICE = "cpu"')
    try:
        cell, graded = reference.run(measuring), reference.run("test_ring_cost")
    finally:
        reference.run(parameters.id)
    assert not errors(cell), text_of(cell)
    assert determine_grade(graded) == (2.0, 2.0)
