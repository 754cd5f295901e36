"""Lab 05 as its students and its grader meet it: the reference, the notebook nobody touched, and wrong solutions."""

import re
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

from nbgrader.utils import determine_grade, is_grade

from ringzero.grading import build_labs, submission
from tests.live_notebook import errors, grades, kernel_of, text_of

LAB = "05_memory"
MUTANTS = sorted((Path(__file__).parent / "mutants" / LAB).glob("*.py"))
ONE_EACH = {submission.read_wrong_solution(path).caught_by: path for path in reversed(MUTANTS)}
FUNCTIONS = [
    *("adam_step", "adamw_step", "gpt_parameters", "model_states", "activation_bytes", "kept_bytes", "checkpointed"),
    "largest_batch",
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


def test_the_step_is_drawn(reference):
    drawn = [o.data["text/html"] for c in reference.cells.values() for o in c.outputs if "<svg" in str(o.get("data"))]
    assert len(drawn) == 2
    for kind in ("parameters", "gradients", "optimizer", "activations"):
        assert all(f'<path class="{kind}"' in figure for figure in drawn)


def test_states_are_predicted_to_the_byte(reference):
    shown = shown_by(reference, 'predicted = model_states(gpt_parameters(4, 64, 101, 48), "adam", "fp32")')
    apart = dict(re.findall(r"^(\w+) +predicted .* apart (\d+)$", shown, re.MULTILINE))
    (tensors,) = re.findall(r"tensors · 4 bytes = (\d+)", shown)
    assert apart == {"parameters": "0", "gradients": "0", "optimizer": tensors}


def test_own_adam_holds_what_torch_s_does(reference):
    shown = shown_by(reference, "class Mine(")
    (theirs, mine) = re.findall(r"parameters ([\d,]+), gradients ([\d,]+), optimizer ([\d,]+) bytes", shown)
    assert theirs[:2] == mine[:2] == ("80,800", "80,800")
    assert (theirs[2], mine[2]) == ("161,608", "161,600")


def test_activations_are_predicted_within_two_per_cent(reference):
    shown = shown_by(reference, "def kept_by_a_block(")
    ratios = [float(ratio) for ratio in re.findall(r"measured / predicted = ([\d.]+)", shown)]
    assert len(ratios) == 6
    assert all(1 <= ratio < 1.02 for ratio in ratios)


def test_recomputation_is_predicted(reference):
    """What is measured beyond the blocks is the model's end, the same each time."""
    shown = shown_by(reference, "MASK = 1")
    rows = re.findall(r"^(\w+) +yours +([\d,]+) .* measured +([\d,]+), and +([\d,]+) at the peak", shown, re.MULTILINE)
    assert [row[0] for row in rows] == ["none", "selective", "full"]
    predicted, kept, peak = ([int(row[i].replace(",", "")) for row in rows] for i in (1, 2, 3))
    assert peak == sorted(peak, reverse=True)
    end = 4 * 4 * 64 * (2 * 64 + 101)
    for mine, measured in zip(predicted, kept, strict=True):
        assert mine + end <= measured <= 1.02 * mine + end + 30_000  # LayerNorms' numbers, ids, generators


def test_what_fits(reference):
    shown = shown_by(reference, '("GPT-2 XL, 80 GB"')
    assert "GPT-2 XL, 80 GB  stage 0 on    1 ranks: batch [6, 19, 148]" in shown
    assert "GPT-3, 141 GB    stage 2 on   64 ranks: batch [0, 0, 0]" in shown


def test_explorer_puts_formulas_beside_a_step(reference):
    (cell,) = (cell for cell in reference.cells.values() if cell.source.lstrip().startswith("def explain("))
    (output,) = cell.outputs
    assert "application/vnd.jupyter.widget-view+json" in output.data
    rows = dict(re.findall(r"(\w+) ([\d.]+)", output.data["text/plain"]))
    assert list(rows) == ["parameters", "gradients", "optimizer", "activations", "peak"]
    assert rows["parameters"] == rows["gradients"] == rows["optimizer"] == "1.000"
    assert 1 <= float(rows["activations"]) < 1.03
    assert float(rows["peak"]) < 1


def test_explorer_answers_and_says_what_fails(reference):
    (cell,) = (name for name, cell in reference.cells.items() if cell.source.lstrip().startswith("def explain("))
    source = reference.cells[cell].source
    try:
        move = "box = explorer()\nbox.children[4].value = 'full'\nprint(box.children[5].value)"
        shown = text_of(reference.run(cell, source + "\n" + move))
        (kept,) = re.findall(r"activations +yours +([\d,]+) ", shown)
        assert int(kept.replace(",", "")) == 4 * 2 * 48 * (2 * 64 + 2 * 64 + 101)  # 2 inputs of layers, and the end
        assert "<svg" in shown
        reference.run("kept_bytes", "def kept_bytes(*_, **__):\n    return 1 / 0")
        failed = reference.run(cell)
        assert "ZeroDivisionError: division by zero" in text_of(failed)
        assert not errors(failed)
    finally:
        reference.run("kept_bytes")
        reference.run(cell)


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
    named = [submission.read_wrong_solution(path).caught_by for path in MUTANTS]
    assert {name: named.count(name) >= 2 for name in TESTS} == dict.fromkeys(TESTS, True)
    assert len(MUTANTS) >= 20


@pytest.mark.parametrize("world_size", [1, 2])
def test_other_numbers_of_ranks(reference, world_size):
    (parameters,) = (cell for cell in reference.cells.values() if "parameters" in cell.metadata.get("tags", []))
    reference.run(parameters.id, f'WORLD_SIZE = {world_size}\nDEVICE = "cpu"')
    try:
        cell = reference.run("test_checkpointed")
    finally:
        reference.run(parameters.id)
    assert determine_grade(cell) == (5.0, 5.0), text_of(cell)
