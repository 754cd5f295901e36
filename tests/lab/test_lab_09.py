"""Lab 09: its answers are what the broken programs' reports say."""

import ast
import re
import time

import pytest

pytest.importorskip("nbgrader")

from ringzero_course.grading import build_labs
from ringzero_course.lab import claims
from ringzero_course.lab.subjects import hangs
from tests.live_notebook import text_of

LAB = "09_debug_a_hang"
TESTS = [f"test_{name}" for name in ("report", "ring_all_reduce", "train", "train_with_hooks", "sum_pieces")]


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
    """Nothing that students have says which one is right."""
    released = build_labs.release_notebook(LAB)
    for cell in released.cells:
        if cell.id in TESTS:
            assert "answer.meets(hangs.why(" in cell.source
            assert "claims.entry(" not in cell.source
    assert not [entries for entries in hangs.ANSWERS.values() if "cause" in entries]


def test_to_try_an_answer_takes_a_while():
    start = time.thread_time()
    seals = {claims.seal("line", number) for number in range(3)}
    assert time.thread_time() - start > 0.03
    assert len(seals) == 3


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("ring_all_reduce", {"cause": "wrong peer", "cycle": {1, 0}, "sources": (1, 0, 1, 2), "line": 5.0}),
        ("train", {"cause": "sum for mean", "worse": 11, "times": 4.0000003}),
        ("report", {"cause": "not all enter", "operation": 7, "waiting": 0, "line": 13}),
    ],
)
def test_equal_answers_in_other_forms(reference, name, answer):
    why = {"ring_all_reduce": "why_ring_hangs", "train": "why_training_diverges", "report": "why_report_hangs"}[name]
    with reference.changed({why: f"def {why}():\n    return {answer!r}"}):
        shown = text_of(reference.run(f"test_{name}"))
    assert "FAIL" not in shown


def test_a_blocking_call_waits_from_its_beginning(reference):
    """Its bar in the first timeline is solid."""
    cell = reference.cell_with("def three_rounds(")
    waits = "[op.wait == op.start for op in examine(three_rounds).trace]"
    shown = text_of(reference.run(cell.id, cell.source.replace("timeline(examine(three_rounds).trace)", waits)))
    reference.run(cell.id)
    assert ast.literal_eval(shown) == [True] * 12
