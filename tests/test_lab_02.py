"""Lab 02 as its students and its grader meet it: the reference, the notebook nobody touched, and wrong solutions."""

import re
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

from nbgrader.utils import determine_grade, is_grade

from ringzero.grading import build_labs, submission
from tests.live_notebook import errors, grades, kernel_of, text_of

LAB = "02_ring_allreduce"
MUTANTS = sorted((Path(__file__).parent / "mutants" / LAB).glob("*.py"))


@pytest.fixture(scope="module")
def reference():
    """The instructor's notebook, run from top to bottom; ``reference.cells`` are its cells with outputs."""
    with kernel_of(build_labs.source_notebook(LAB)) as kernel:
        kernel.cells = kernel.run_all()
        yield kernel


def test_reference_gets_every_point(reference):
    found = grades(reference.cells.values())
    assert len(found) == 7
    assert all(score == largest for score, largest in found.values()), found


def test_reference_shows_no_error_and_no_stderr(reference):
    for cell in reference.cells.values():
        assert not errors(cell), text_of(cell)
        assert not [output for output in cell.outputs if output.get("name") == "stderr"], text_of(cell)


def test_points_in_the_text_are_those_of_the_cell(reference):
    for cell in reference.notebook.cells:
        if is_grade(cell) and cell.cell_type == "code":
            (stated,) = re.findall(r"Check\(.*points=(\d+)", cell.source)
            assert int(stated) == cell.metadata.nbgrader.points
            assert cell.source.rstrip().endswith("check.score()")


def test_same_points_the_second_time(reference):
    for cell_id, cell in reference.cells.items():
        if is_grade(cell):
            assert text_of(reference.run(cell_id)) == text_of(cell)


def test_figures_and_explorer_show(reference):
    drawn = [cell for cell in reference.cells.values() if cell.source.startswith(("draw(", "explore("))]
    assert len(drawn) == 2
    figure, widgets = drawn
    assert "<svg" in figure.outputs[0].data["text/html"]
    assert "10 rounds" in figure.outputs[0].data["text/html"] or "N" in text_of(figure)
    data = widgets.outputs[0].data
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "ring_all_reduce, 4 ranks: 6 rounds" in data["text/plain"]


def test_untouched_notebook_gets_nothing():
    with kernel_of(build_labs.release_notebook(LAB)) as kernel:
        cells = kernel.run_all()
    found = grades(cells.values())
    assert len(found) == 7
    assert all(score == 0 for score, _ in found.values()), found
    assert "is not written yet" in text_of(cells["test_ring_all_reduce"])
    for cell in cells.values():
        assert not errors(cell), text_of(cell)  # papermill and nbgrader validate get to the end
    shown = [cell for cell in cells.values() if cell.source.startswith(("draw(", "explore("))]
    assert ["is not written yet" in text_of(cell) for cell in shown] == [True, True]


@pytest.mark.parametrize("path", MUTANTS, ids=lambda path: path.stem)
def test_wrong_solution_loses_points(reference, path):
    wrong = submission.read_wrong_solution(path)
    reference.run("cell-02", "import ringzero.lab.budget\nringzero.lab.budget.CALL_SECONDS = 4.0")
    try:
        for grade_id, source in wrong.replacements.items():
            assert not errors(reference.run(grade_id, source))
        cell = reference.run(wrong.caught_by)
        score, largest = determine_grade(cell)
        assert score < largest, text_of(cell)
        assert not errors(cell)
        assert "FAIL" in text_of(cell)
    finally:
        for grade_id in wrong.replacements:
            reference.run(grade_id)


def test_there_are_enough_wrong_solutions():
    assert len(MUTANTS) >= 10
    named = {submission.read_wrong_solution(path).caught_by for path in MUTANTS}
    notebook = build_labs.source_notebook(LAB)
    assert named == {cell.id for cell in notebook.cells if is_grade(cell) and cell.cell_type == "code"}


WRONG_CALLS = {
    "raises on one rank": (
        "    if dist.get_rank() == 2:\n        raise KeyError('lost')\n    dist.barrier()",
        ["rank 2 raised KeyError: 'lost'", "line 3: raise KeyError('lost')"],
    ),
    "hangs": (
        "    if dist.get_rank() != 1:\n        dist.recv(tensor, src=1)",
        ["no end after", "rank 0 waits in ring_all_gather", "line 3", "rank 1 had returned"],
    ),
    "ends the process": ("    import os\n    os._exit(0)", ["ended with exit status 0 before its function returned"]),
    "segmentation fault": ("    import os, signal\n    os.kill(os.getpid(), signal.SIGSEGV)", ["SIGSEGV"]),
    "sys.exit": ("    import sys\n    sys.exit(0)", ["raised SystemExit"]),
    "writes past the end": (
        "    tensor.as_strided((tensor.numel() + 1,), (1,)).fill_(1)\n    ring_reduce_scatter(tensor)",
        ["wrong in"],
    ),
    "a size that does not match": (
        "    n, r = dist.get_world_size(), dist.get_rank()\n"
        "    if n > 1 and r == 0:\n        dist.send(tensor, 1)\n"
        "    elif n > 1 and r == 1:\n        dist.recv(tensor[:2].clone(), 0)",
        ["rank 1 got a message of 16000 bytes and expected one of 8", "line 6 in ring_all_gather"],
    ),
    "not a function": (None, ["ring_all_gather is 3, not a function"]),
    "prints": ("    print('I am', dist.get_rank(), 'of the ranks')", ["rank 1 │ I am 1 of the ranks"]),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_whatever_goes_wrong_is_a_row_of_the_table(reference, name):
    body, words = WRONG_CALLS[name]
    source = "ring_all_gather = 3" if body is None else f"def ring_all_gather(tensor):\n{body}\n"
    reference.run("cell-02", "import ringzero.lab.budget\nringzero.lab.budget.CALL_SECONDS = 4.0")
    try:
        reference.run("ring_all_gather", source)
        cell = reference.run("test_ring_all_gather")
        assert not errors(cell)
        assert not [output for output in cell.outputs if output.get("name") == "stderr"]
        score, largest = determine_grade(cell)
        assert score < largest
        for word in words:
            assert word in text_of(cell)
    finally:
        reference.run("ring_all_gather")


def test_parameters_cell_removed():
    notebook = build_labs.release_notebook(LAB)
    notebook.cells = [cell for cell in notebook.cells if "parameters" not in cell.metadata.get("tags", [])]
    with kernel_of(notebook) as kernel:
        first = next(cell for cell in notebook.cells if cell.cell_type == "code")
        cell = kernel.run(first.id)
    (error,) = errors(cell)
    assert error.evalue.startswith("WORLD_SIZE and DEVICE not defined: the lab's parameters cell is missing")
    assert len(error.traceback) == 1


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_other_numbers_of_ranks(world_size):
    notebook = build_labs.source_notebook(LAB)
    with kernel_of(notebook) as kernel:
        parameters = next(cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
        kernel.run(parameters.id, f'WORLD_SIZE = {world_size}\nDEVICE = "cpu"')
        cells = [
            kernel.run(cell.id) for cell in notebook.cells if cell.cell_type == "code" and cell.id != parameters.id
        ]
    assert all(score == largest for score, largest in grades(cells).values()), grades(cells)
    for cell in cells:
        assert not errors(cell), text_of(cell)
