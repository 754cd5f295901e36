"""Lab 06 as its students and its grader meet it: the reference, the notebook nobody touched, and wrong solutions."""

import re
from pathlib import Path

import pytest
import torch

pytest.importorskip("nbgrader")

from nbgrader.utils import determine_grade, is_grade

from ringzero.collectives import chunk_bounds
from ringzero.grading import build_labs, submission
from ringzero.lab import Check, checks, runs, sharded
from tests.live_notebook import errors, grades, kernel_of, text_of

LAB = "06_zero"
MUTANTS = sorted((Path(__file__).parent / "mutants" / LAB).glob("*.py"))
BUILT = ("plan", "Flat", "mean_gradient", "Zero1", "Zero2", "clip", "Sharded", "Zero3", "checkpoint")
TESTS = [f"test_{name}" for name in BUILT]


@pytest.fixture(scope="module")
def reference():
    """The instructor's notebook, run from top to bottom; ``reference.cells`` are its cells with outputs."""
    with kernel_of(build_labs.source_notebook(LAB)) as kernel:
        kernel.cells = kernel.run_all()
        yield kernel


def cell_with(cells, text):
    (cell,) = (cell for cell in cells.values() if text in cell.source)
    return cell


def test_reference_gets_every_point_and_shows_no_error(reference):
    found = grades(reference.cells.values())
    assert list(found) == TESTS
    assert all(score == largest for score, largest in found.values()), found
    for cell in reference.cells.values():
        assert not errors(cell), text_of(cell)
        assert not [output for output in cell.outputs if output.get("name") == "stderr"], text_of(cell)
        assert "Warning" not in text_of(cell)


def test_points_in_the_text_are_those_of_the_cell(reference):
    for cell in reference.notebook.cells:
        if is_grade(cell) and cell.cell_type == "code":
            (stated,) = re.findall(r"points=(\d+)", cell.source)
            assert int(stated) == cell.metadata.nbgrader.points
            assert cell.source.rstrip().endswith("check.score()")


def test_same_points_the_second_time(reference):
    for name in TESTS:
        assert text_of(reference.run(name)) == text_of(reference.cells[name])


def test_measured_is_as_planned(reference):
    """To the ring's buffer for what is held at rest, to the elements that do not divide for the rest."""
    lines = [line.split() for line in text_of(cell_with(reference.cells, "def one_step(")).splitlines()]
    rows = [
        [int(word.replace(",", "")) for word in line if word != "plan"] for line in lines if line and line[0].isdigit()
    ]
    assert [row[0] for row in rows] == [1, 2, 3]
    for _, held, held_plan, gradients, gradients_plan, sent, sent_plan in rows:
        assert held_plan <= held <= held_plan + 3_400
        assert gradients == pytest.approx(gradients_plan, abs=60)
        assert sent == pytest.approx(sent_plan, abs=100)


def test_slider_shows_the_students_own_steps(reference):
    cell = cell_with(reference.cells, "def draw_two_steps(")
    data = cell.outputs[-1].data
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/plain"].startswith("stage 1: <figure: Memory of a training step.")
    assert "optimizer" in data["text/plain"]


def test_untouched_notebook_gets_nothing():
    with kernel_of(build_labs.release_notebook(LAB)) as kernel:
        cells = kernel.run_all()
    found = grades(cells.values())
    assert list(found) == TESTS
    assert all(score == 0 for score, _ in found.values()), found
    for name, test in zip(BUILT, TESTS, strict=True):
        assert f"{name} is not written yet" in text_of(cells[test])
    for cell in cells.values():
        assert not errors(cell), text_of(cell)  # papermill and nbgrader validate get to the end
    assert "Zero3: not written yet" in text_of(cell_with(cells, "def one_step("))
    assert "Nothing to draw: it calls what is not written yet" in text_of(cell_with(cells, "def draw_two_steps("))


WORDS = {  # what the first reason says
    "plan_stage_1_is_stage_2": "what is held of gradients is 1e+06, expected 4e+06",
    "flat_copies": "what was written into the vector does not show in weight",
    "flat_only_when_n_divides": "rank 1 owns [10:20] of 42 elements, expected [10:21]",
    "mean_is_a_sum": "the shard is 4 times what it should be",
    "mean_of_the_parameters": "the shard is of the parameters, not of their gradients",
    "mean_of_this_rank": "it was not reduced",
    "mean_by_all_reduce": "1.5 times them; 0.75 times would do",
    "mean_by_torch_s_all_reduce": "rank 0 called all_reduce; build it from ringzero's collectives",
    "mean_is_a_view": "is a view that keeps 288 bytes alive",
    "zero1_is_adamw": "holds 76,896 bytes besides the parameters; two numbers for each of the 2,322 that it owns",
    "zero1_never_gathers": "were they handed round?",
    "zero1_last_shard_dropped": "on rank 3 after the first step the shard of layers.0",
    "zero1_last_layer_dropped": "after the first step the shard of layers.9",
    "zero2_is_stage_1": "holds 37,252 bytes of gradients; its shard is 9,288, all of them 37,236",
    "zero2_frees_at_the_end": "during the backward pass rank 0 held 32,880 bytes more than its shard of the gradients",
    "zero2_each_parameter": "sent 83,804 bytes a step, 2.25 times the parameters'",
    "clip_by_the_local_norm": "the norm is",
    "sharded_new_memory": "not gathered again into the same storage",
    "sharded_shard_is_a_view": "the shard has lost its memory",
    "zero3_is_replicated": "after the step rank 0 holds 58,236 bytes; its shards of the parameters",
    "zero3_never_freed_in_forward": "8.3 layers: what was gathered is still there",
    "zero3_everything_at_once": "during the forward pass rank 0 held",
    "zero3_not_gathered_for_backward": "the backward pass uses parameters whose memory was freed, and not gathered",
    "checkpoint_leaves_it_whole": "is still there afterwards",
}


def test_every_reason_is_that_of_a_wrong_solution():
    assert {path.stem for path in MUTANTS} >= WORDS.keys()


@pytest.mark.parametrize("path", MUTANTS, ids=lambda path: path.stem)
def test_wrong_solution_loses_points(reference, path):
    wrong = submission.read_wrong_solution(path)
    try:
        for grade_id, source in wrong.replacements.items():
            assert not errors(reference.run(grade_id, source))
        cell = reference.run(wrong.caught_by)
        score, largest = determine_grade(cell)
        assert score < largest, text_of(cell)
        assert not errors(cell)
        assert "the check itself failed" not in text_of(cell)
        assert "cannot be checked" not in text_of(cell)
        lines = text_of(cell).splitlines()
        assert WORDS.get(path.stem, "") in lines[1 + next(i for i, line in enumerate(lines) if "FAIL" in line)]
    finally:
        for grade_id in wrong.replacements:
            reference.run(grade_id)


def test_there_are_enough_wrong_solutions():
    caught_by = [submission.read_wrong_solution(path).caught_by for path in MUTANTS]
    assert set(caught_by) == set(TESTS)
    assert min(caught_by.count(name) for name in TESTS) >= 3


def test_a_rank_that_skips_a_gather_is_named(reference):
    source = reference.cells["Zero1"].source.replace(
        "all_gather(flat.whole)", "dist.get_rank() == 1 or all_gather(flat.whole)"
    )
    try:
        reference.run("Zero1", source)
        cell = reference.run("test_Zero1")
        score, largest = determine_grade(cell)
        assert score < largest
        assert "rank 1" in text_of(cell)
    finally:
        reference.run("Zero1")


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_other_numbers_of_ranks(world_size):
    notebook = build_labs.source_notebook(LAB)
    with kernel_of(notebook) as kernel:
        parameters = next(cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", []))
        kernel.texts[parameters.id] = f'WORLD_SIZE = {world_size}\nDEVICE = "cpu"'
        cells = kernel.run_all()
    assert all(score == largest for score, largest in grades(cells.values()).values()), grades(cells.values())
    for cell in cells.values():
        assert not errors(cell), text_of(cell)


# The lab's own oracle and measurements, against the plain thing.


def run_of(ranks, operations=(), **options):
    run = runs.Run(runs.Case(ranks, None, torch.float32, (), options), None)
    run.operations = list(operations)
    return run


def test_the_labs_adamw_is_torchs():
    (source,) = (cell.source for cell in build_labs.source_notebook(LAB).cells if "def adamw(" in cell.source)
    names = {"torch": torch}
    exec(source, names)
    mine, theirs = torch.randn(7, dtype=torch.float64), torch.nn.Parameter(torch.zeros(7, dtype=torch.float64))
    theirs.data.copy_(mine)
    optimizer, state = torch.optim.AdamW([theirs], **sharded.ADAMW), {}
    for _ in range(5):
        theirs.grad = torch.randn(7, dtype=torch.float64)
        names["adamw"](mine, theirs.grad, state)
        optimizer.step()
    torch.testing.assert_close(mine, theirs.detach(), rtol=1e-12, atol=0)
    for number in sharded.NUMBERS:
        torch.testing.assert_close(state[number], optimizer.state[theirs][number])


def test_shards_are_those_of_the_collectives():
    vector = torch.arange(10)
    assert torch.cat([sharded.owned(vector, 3, rank) for rank in range(3)]).tolist() == list(range(10))
    bounds = chunk_bounds(10, 3).tolist()
    assert [sharded.owned(vector, 3, rank)[0].item() for rank in range(3)] == bounds[:-1]


def test_alone_is_one_process_whatever_the_number_of_passes():
    """Gradients of several passes add up; those of the ranks are averaged."""
    once, again = (sharded.alone(run_of(2, seed=3, hidden=(5,), passes=passes)) for passes in (1, 2))
    module = sharded.network(3, (5,))
    for rank in range(2):
        (sharded.training.loss_of(module, 3, rank, 2) / 2).backward()
    for name, p in module.named_parameters():
        torch.testing.assert_close(once["gradients"][name], p.grad)
        assert not torch.equal(once["gradients"][name], again["gradients"][name])


def test_ringzeros_collectives_are_allowed_where_the_check_says_so():
    made = [[{"kind": kind, "call": 1, "peer": 0, "bytes": 4, "end": 1.0} for kind in ("header", "send", "recv")]]
    for built_from, reason in (
        (("send", "recv"), "used a collective of ringzero; build it from send and recv"),
        ((checks.LIBRARY,), None),
    ):
        check = Check(print, points=1, world_size=2, built_from=built_from)
        said = check._nothing_proved(run_of(1, made))
        assert (reason is None and said is None) or reason in said
    made[0].append({"kind": "all_reduce", "call": None, "peer": None, "bytes": 4, "end": 1.0})
    assert "build it from ringzero's collectives" in check._nothing_proved(run_of(1, made))
