"""Lab 01 as its students and its grader meet it: the reference, the notebook nobody touched, and wrong solutions."""

import re
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

from nbgrader.utils import determine_grade, is_grade

from ringzero.grading import build_labs, submission
from tests.live_notebook import errors, grades, kernel_of, text_of

LAB = "01_collectives"
MUTANTS = sorted((Path(__file__).parent / "mutants" / LAB).glob("*.py"))
ONE_EACH = {submission.read_wrong_solution(path).caught_by: path for path in reversed(MUTANTS)}
FUNCTIONS = [
    *("broadcast", "reduce", "gather", "scatter", "all_gather", "reduce_scatter", "all_to_all", "all_reduce"),
    *("tree_broadcast", "barrier"),
]
TESTS = [f"test_{name}" for name in FUNCTIONS]


@pytest.fixture(scope="module")
def reference():
    """The instructor's notebook, run from top to bottom; ``reference.cells`` are its cells with outputs."""
    with kernel_of(build_labs.source_notebook(LAB)) as kernel:
        kernel.cells = kernel.run_all()
        yield kernel


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


def test_what_each_rank_had_and_has(reference):
    shown = [text_of(cell) for cell in reference.cells.values() if cell.source.startswith("show(")]
    assert len(shown) == 8
    assert "rank 3: 30 31 32 33 becomes 0 1 2 3" in shown[0]  # broadcast
    assert "rank 0: 0 1 2 3 becomes 60 64 68 72" in shown[1]  # reduce
    assert "rank 3: 30 31 32 33 becomes 30 31 32 33" in shown[1]
    assert "rank 2: 20 21 22 23 becomes 2 12 22 32" in shown[6]  # all-to-all


def test_bytes_are_counted_and_the_tree_is_drawn(reference):
    (counted,) = (text_of(cell) for cell in reference.cells.values() if "def count(" in cell.source)
    through_rank_0, direct = counted.split("all_reduce")
    assert "rank 0:  192.0 KiB out,  192.0 KiB in" in through_rank_0
    assert "rank 1:   64.0 KiB out,   64.0 KiB in" in through_rank_0
    assert re.findall(r"rank (\d): +96\.0 KiB out, +96\.0 KiB in", direct) == list("0123")
    flat, tree = (cell for cell in reference.cells.values() if cell.source.startswith("draw("))
    assert "3 rounds" in flat.outputs[0].data["text/html"]
    assert "2 rounds" in tree.outputs[0].data["text/html"]


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


@pytest.mark.parametrize("world_size", [1, 3])
def test_other_numbers_of_ranks(reference, world_size):
    (parameters,) = (cell for cell in reference.cells.values() if "parameters" in cell.metadata.get("tags", []))
    reference.run(parameters.id, f'WORLD_SIZE = {world_size}\nDEVICE = "cpu"')
    try:
        cells = [
            reference.run(name) for name in reference.cells if not reference.cells[name].source.startswith("WORLD")
        ]
    finally:
        reference.run(parameters.id)
    assert all(score == largest for score, largest in grades(cells).values()), grades(cells)
    for cell in cells:
        assert not errors(cell), text_of(cell)
