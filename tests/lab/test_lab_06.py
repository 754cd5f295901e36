"""Lab 06: what is measured beside what was planned, the slider, and a rank that skips a gather."""

import pytest

pytest.importorskip("nbgrader")

from nbgrader.utils import determine_grade

from tests.live_notebook import text_of

LAB = "06_zero"


def test_measured_is_as_planned(reference):
    """To the ring's buffer for what is held at rest, to the elements that do not divide for the rest."""
    lines = [line.split() for line in text_of(reference.cell_with("def one_step(")).splitlines()]
    rows = [
        [int(word.replace(",", "")) for word in line if word != "plan"] for line in lines if line and line[0].isdigit()
    ]
    assert [row[0] for row in rows] == [1, 2, 3]
    for _, held, held_plan, gradients, gradients_plan, sent, sent_plan in rows:
        assert held_plan <= held <= held_plan + 3_400
        assert gradients == pytest.approx(gradients_plan, abs=60)
        assert sent == pytest.approx(sent_plan, abs=100)


def test_slider_shows_the_students_own_steps(reference):
    cell = reference.cell_with("def draw_two_steps(")
    data = cell.outputs[-1].data
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/plain"].startswith("stage 1: <figure: Memory of a training step.")
    assert "optimizer" in data["text/plain"]


def test_a_rank_that_skips_a_gather_is_named(reference):
    source = reference.cells["Zero1"].source.replace(
        "all_gather(flat.whole)", "dist.get_rank() == 1 or all_gather(flat.whole)"
    )
    with reference.changed({"Zero1": source}):
        cell = reference.run("test_Zero1")
    score, largest = determine_grade(cell)
    assert score < largest
    assert "rank 1" in text_of(cell)


def test_a_class_built_on_an_older_one_is_not_checked(reference):
    """Zero2 still has the methods of the Zero1 that was there when its cell ran."""
    reference.run("Zero1")
    cell = reference.run("test_Zero2")
    assert "Zero2 is built on an older Zero1: run the cell of Zero2 again, then this one" in text_of(cell)
    for name in ("Zero2", "Zero3"):
        reference.run(name)
    points, possible = determine_grade(reference.run("test_Zero2"))
    assert points == possible


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def clip(shards, max_norm):\n    return (", "the cell that defines clip does not parse"),
        (
            "not_there\ndef clip(shards, max_norm):\n    pass",
            "the cell that defines clip ended with an error before it did so",
        ),
    ],
)
def test_a_cell_that_failed_is_not_checked_by_what_it_defined_before(reference, source, says):
    reference.run("clip", source)
    assert says in text_of(reference.run("test_clip"))
    reference.run("clip")
    points, possible = determine_grade(reference.run("test_clip"))
    assert points == possible
