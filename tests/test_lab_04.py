"""Lab 04 as its students and its grader meet it: the reference, the notebook nobody touched, and wrong solutions."""

import re
from pathlib import Path

import pytest
import torch

pytest.importorskip("nbgrader")

from nbgrader.utils import determine_grade, is_grade

from ringzero.grading import build_labs, submission
from ringzero.lab import training
from tests.live_notebook import errors, grades, kernel_of, text_of

LAB = "04_ddp"
MUTANTS = sorted((Path(__file__).parent / "mutants" / LAB).glob("*.py"))
BUILT = ("loss_of_part", "start_alike", "average_in_hooks", "assign", "Bucket", "Overlapped", "Accumulating", "DDP")
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


def test_points_in_the_text_are_those_of_the_cell(reference):
    for cell in reference.notebook.cells:
        if is_grade(cell) and cell.cell_type == "code":
            (stated,) = re.findall(r"points=(\d+)", cell.source)
            assert int(stated) == cell.metadata.nbgrader.points
            assert cell.source.rstrip().endswith("check.score()")


def test_same_points_the_second_time(reference):
    for name in TESTS:
        assert text_of(reference.run(name)) == text_of(reference.cells[name])


def test_losses_are_those_of_one_process_and_of_torch(reference):
    rows = text_of(cell_with(reference.cells, "def losses(")).splitlines()[1:]
    assert len(rows) == 5
    for row in rows:
        _, alone, yours, torchs = map(float, row.split())
        assert alone == pytest.approx(yours, rel=1e-5)
        assert alone == pytest.approx(torchs, rel=1e-5)


def test_slider_shows_the_students_own_step(reference):
    cell = cell_with(reference.cells, "def draw_a_step(")
    data = cell.outputs[-1].data
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/plain"].startswith("bucket size 1 KiB: <figure: Timeline.")
    sizes = re.findall(r'"([\d]+ [KM]iB)":', cell.source)
    show = "\n".join(f"print({size}, draw_a_step({size} * 1024)._repr_html_())" for size in (1, 1024, 25 * 1024))
    shown = text_of(reference.run(cell.id, f"{cell.source}\n{show}"))
    counts = [int(count) for count in re.findall(r"(\d+) buckets?; the backward pass and finish\(\) took", shown)]
    assert len(sizes) == 5
    assert counts[0] > counts[1] > counts[2] == 1


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
    assert "DDP: not written yet" in text_of(cell_with(cells, "def losses("))
    assert "Nothing to draw: it calls what is not written yet" in text_of(cell_with(cells, "def draw_a_step("))


WORDS = {  # what the first reason says
    "hooks_add_up": "layers.0.weight is 4 times what it should be",
    "hooks_of_zeros": "is all zeros",
    "hooks_reduce_the_parameter": "is that of its own part: it was not averaged",
    "overlapped_not_at_all": "bucket 1 of 4: full when layer 3 was done, but it left after the backward pass",
    "overlapped_one_behind": "full when layer 3 was done, but it left when layer 2 had begun",
    "overlapped_waits_in_the_hook": "waited for before the backward pass was over",
    "overlapped_ignores_the_cap": "all-reduced 1028, 1028, 1028 bytes, expected 168, 312, 240, 308 in each",
    "overlapped_from_different_starts": "on rank 1 at the start layers.0.weight is off",
    "overlapped_is_torchs_own": "DistributedDataParallel is not to be used: write it yourself",
    "overlapped_is_ringzeros_own": "DistributedDataParallel is not to be used: write it yourself",
    "bucket_never_waits": "never called wait() on its all_reduce",
    "bucket_waits_at_once": "waited for its all-reduce inside launch()",
    "ddp_zero_for_what_was_added_up": "the gradient of layers.2.weight is all zeros",
    "hooks_twice_on_what_is_tied": "rank 0 called all_reduce on 196 bytes 4 times, expected 2",
    "part_sums_the_loss": "rank 0 called all_reduce; it is to send nothing",
    "part_everyone_takes_all": "rank 0 took 24 of 24 samples, at most 6 are its own",
    "no_sync_ends_with_the_inner_one": "bytes started inside no_sync",
}


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
        assert "FAIL" in text_of(cell)
        assert "the check itself failed" not in text_of(cell)
        assert "cannot be checked" not in text_of(cell)
        lines = text_of(cell).splitlines()
        assert WORDS.get(path.stem, "") in lines[1 + next(i for i, line in enumerate(lines) if "FAIL" in line)]
    finally:
        for grade_id in wrong.replacements:
            reference.run(grade_id)


def test_a_rank_that_skips_a_collective_is_named_and_costs_little(reference):
    """Rank 1 leaves its last bucket out; the others wait for it."""
    source = reference.cells["Overlapped"].source.replace(
        "        if not bucket.missing:",
        "        if not bucket.missing and (dist.get_rank() != 1 or bucket is not self.buckets[-1]):",
    )
    try:
        reference.run("Overlapped", source)
        cell = reference.run("test_Overlapped")
        score, largest = determine_grade(cell)
        assert score < largest
        assert "rank 1" in text_of(cell)
        assert "Bucket" in text_of(cell) or "wait" in text_of(cell)
    finally:
        reference.run("Overlapped")


def test_there_are_enough_wrong_solutions():
    caught_by = [submission.read_wrong_solution(path).caught_by for path in MUTANTS]
    assert set(caught_by) == set(TESTS)
    assert min(caught_by.count(name) for name in TESTS) >= 3


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


# The lab's own training, against the plain thing.


def test_alone_is_one_process_on_the_whole_batch():
    report = training.alone(3, seed=5, steps=1)
    model = training.Model(5)
    x, y = training.batch(5, 3 * training.SAMPLES)
    (model(x) - y).square().mean().backward()
    for name, p in model.named_parameters():
        torch.testing.assert_close(report["gradients"][name], p.grad)
        torch.testing.assert_close(report["end"][name], p.detach() - training.RATE * p.grad)


def test_the_model_notes_when_backward_comes_to_a_layer():
    """A layer's own gradients come after its mark and before the mark of the layer below."""
    model, events = training.Model(1), []
    model.begun = type("Noted", (dict,), {"__setitem__": lambda self, layer, _: events.append(layer)})()
    for number, layer in enumerate(model.layers):
        for p in layer.parameters():
            p.register_post_accumulate_grad_hook(lambda _, number=number: events.append(number))
    x, _ = training.batch(1)
    model(x).sum().backward()
    assert events == [3, 3, 3, 2, 2, 2, 1, 1, 1, 0, 0, 0]


def test_awkward_models():
    state = training.Model(1).state_dict()
    assert {"scale", "count"} <= state.keys()
    assert "shift" not in state
    tied = training.Model(1, hidden=(7, 7, 7), tied=(1, 2))
    assert tied.layers[1].weight is tied.layers[2].weight
    assert not any("layers.1" in name for name in training.Model(1, frozen=(1,)).trained())
    never = training.alone(2, seed=1, steps=1, hidden=(7, 7, 7), skipped=(1,))["gradients"]
    assert not never["layers.1.weight"].any()
    assert never["layers.2.weight"].any()
    some = training.alone(2, seed=1, steps=1, hidden=(7, 7, 7), skipped_on_odd=(1,))["gradients"]
    assert some["layers.1.weight"].any()
