"""Lab 09 as its students and its grader meet it; and that its answers are what the broken programs' reports say."""

import ast
import re
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

from nbgrader.utils import determine_grade, is_grade

from ringzero.grading import build_labs, submission
from tests.live_notebook import errors, grades, kernel_of, text_of

LAB = "09_debug_a_hang"
MUTANTS = sorted((Path(__file__).parent / "mutants" / LAB).glob("*.py"))
TESTS = [f"test_{name}" for name in ("report", "ring_all_reduce", "train", "train_with_hooks", "sum_pieces")]


@pytest.fixture(scope="module")
def reference():
    """The instructor's notebook, run from top to bottom; ``reference.cells`` are its cells with outputs."""
    with kernel_of(build_labs.source_notebook(LAB)) as kernel:
        kernel.cells = kernel.run_all()
        yield kernel


def answer(reference, name):
    """What the reference's ``name()`` returns."""
    return ast.literal_eval(text_of(reference.run(name, f"{reference.cells[name].source}\n{name}()")))


def line(reference, name, number):
    """Line ``number`` of the cell of the broken program ``name``."""
    return reference.cells[name].source.splitlines()[number - 1].strip()


def shown_after(reference, name):
    """What the cells that run the broken program ``name`` show, up to its diagnosis."""
    cells = list(reference.cells.values())
    start = next(i for i, cell in enumerate(cells) if cell.id == name) + 1
    stop = next(i for i, cell in enumerate(cells) if i > start and cell.id.startswith("why_"))
    return "\n".join(text_of(cell) for cell in cells[start:stop])


def test_reference_gets_every_point_and_shows_no_error(reference):
    found = grades(reference.cells.values())
    assert list(found) == [*TESTS, "test_first_missing"]
    assert all(score == largest for score, largest in found.values()), found
    for cell in reference.cells.values():
        assert not errors(cell), text_of(cell)
        assert not [output for output in cell.outputs if output.get("name") == "stderr"], text_of(cell)


def test_points_in_the_text_are_those_of_the_cell(reference):
    for cell in reference.notebook.cells:
        if is_grade(cell) and cell.cell_type == "code":
            stated = re.findall(r"Check\(.*points=(\d+)", cell.source)
            assert sum(map(int, stated)) == cell.metadata.nbgrader.points
            assert cell.source.rstrip().endswith("check.score()")


def test_same_points_the_second_time(reference):
    for name in TESTS:
        assert text_of(reference.run(name)) == text_of(reference.cells[name])


def test_broken_programs_cannot_be_edited_away(reference):
    """nbgrader puts read-only cells back before it grades, and the answers' line numbers count on their text."""
    locked = {cell.id for cell in reference.notebook.cells if cell.metadata.get("nbgrader", {}).get("locked")}
    programs = {f"broken_{name}" for name in ("report", "ring", "train", "hooks", "sums")}
    assert locked == {"data", "causes", *programs, *TESTS, "test_first_missing"}


def test_the_hang_at_the_end(reference):
    said, shown = answer(reference, "why_report_hangs"), shown_after(reference, "broken_report")
    (waiting, operation) = re.search(r"never entered all_reduce #(\d+); rank (\d+) waits there", shown).groups()[::-1]
    assert (said["waiting"], said["operation"]) == ([int(waiting)], int(operation))
    assert f"line {said['line']} in broken_report" in shown
    assert "mean_over_ranks(" in line(reference, "broken_report", said["line"])


def test_the_ring_for_two(reference):
    said, shown = answer(reference, "why_ring_hangs"), shown_after(reference, "broken_ring")
    assert "rank 1 → [" in shown.split("stuck for good")[0]  # two ranks: it ends
    first, second = said["cycle"]
    assert f"a cycle: rank {first} waits to receive from rank {second}" in shown
    assert f"rank {second} waits to receive from rank {first}" in shown
    left = line(reference, "broken_ring", said["line"]).removeprefix("left = ")
    assert said["sources"] == [eval(left, {"rank": rank, "n": 4}) for rank in range(4)]


def test_the_learning_rate(reference):
    said, shown = answer(reference, "why_training_diverges"), shown_after(reference, "broken_train")
    losses = [float(four) for four in re.findall(r"^ +\d+ +[\d.]+ +([\d.]+)$", shown, re.MULTILINE)]
    assert len(losses) == 20
    assert said["worse"] == next(step for step, loss in enumerate(losses) if loss > losses[0])
    assert losses[said["worse"]] > 1.05 * losses[0] > 1.3 * losses[said["worse"] - 1]  # no matter of rounding
    one, four = (ast.literal_eval(text) for text in re.findall(r": +(\[.*\])", shown))
    assert [b / a for a, b in zip(one, four, strict=True)] == pytest.approx([said["times"]] * 4, rel=1e-4)
    assert "same w on all ranks: True" in shown


def test_the_four_models(reference):
    said, shown = answer(reference, "why_models_differ"), shown_after(reference, "broken_hooks")
    of_three_steps = ast.literal_eval(re.search(r"rank 0 summed (\[.*\])", shown)[1])
    assert said["bytes_a_step"] == sum(size for _, size in of_three_steps) / 3
    gaps = [ast.literal_eval(text) for text in re.findall(r"differ from rank 0 by (\[.*\])", shown)]
    assert [any(float(gap) for gap in step) for step in gaps] == [False, True, True, True]
    program = reference.cells["broken_hooks"].source.replace("gradient /= n", "print(type(gradient).__name__)")
    given = text_of(reference.run("broken_hooks", f"{program}\nexamine(broken_hooks, 5, 16, 5, 0.1, 1)"))
    reference.run("broken_hooks")
    assert f"rank 3 │ {said['given']}\n" in given


def test_the_largest_first(reference):
    said, shown = answer(reference, "why_sums_fail"), shown_after(reference, "broken_sums")
    call = f"all_reduce #{said['collective']}"
    assert f"the ranks disagree on collective #{said['collective']}: ranks 0, 2, 3 called {call} on 8 bytes" in shown
    assert f"rank {said['odd']} called {call} on {said['bytes']} bytes" in shown
    assert line(reference, "broken_sums", said["line"]).startswith("largest_first = sorted(")
    without_report = [ast.literal_eval(text) for text in re.findall(r"(?:→|are) (\[.*\])", shown)]
    assert len(without_report) == 5
    assert all(ends != without_report[-1] for ends in without_report[:4])


def test_causes_are_in_the_list(reference):
    causes = ast.literal_eval(reference.cells["causes"].source.removeprefix("CAUSES = "))
    assert len(causes) == 13
    for name in ("report_hangs", "ring_hangs", "training_diverges", "models_differ", "sums_fail"):
        assert answer(reference, f"why_{name}")["cause"] in causes


def test_the_cause_is_judged_only_when_handed_in():
    released = build_labs.release_notebook(LAB)
    for cell in released.cells:
        if cell.id in TESTS:
            assert "the cause is one of the list" in cell.source
            assert "claims.entry(" not in cell.source


def test_untouched_notebook_gets_nothing():
    with kernel_of(build_labs.release_notebook(LAB)) as kernel:
        cells = kernel.run_all()
    found = grades(cells.values())
    assert len(found) == 6
    assert all(score == 0 for score, _ in found.values()), found
    for cell in cells.values():
        assert not errors(cell), text_of(cell)  # papermill and nbgrader validate get to the end
        if is_grade(cell):
            assert "is not written yet" in text_of(cell)


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
    finally:
        for grade_id in wrong.replacements:
            reference.run(grade_id)


def test_there_are_enough_wrong_solutions():
    assert len(MUTANTS) >= 12
    assert {submission.read_wrong_solution(path).caught_by for path in MUTANTS} == {*TESTS, "test_first_missing"}


@pytest.mark.parametrize("world_size", [1, 2])
def test_other_numbers_of_ranks(reference, world_size):
    """The broken programs do not depend on WORLD_SIZE, so only the checks are run again."""
    (parameters,) = (cell for cell in reference.cells.values() if "parameters" in cell.metadata.get("tags", []))
    reference.run(parameters.id, f'WORLD_SIZE = {world_size}\nDEVICE = "cpu"')
    try:
        cells = [reference.run(name) for name in (*TESTS, "test_first_missing")]
    finally:
        reference.run(parameters.id)
    assert all(score == largest for score, largest in grades(cells).values()), [text_of(cell) for cell in cells]
    for cell in cells:
        assert not errors(cell), text_of(cell)
