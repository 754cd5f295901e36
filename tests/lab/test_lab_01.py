"""Lab 01: what its cells show besides the checks."""

import re

import pytest

pytest.importorskip("nbgrader")

from ringzero_course.grading import build_labs
from tests.live_notebook import errors, text_of

LAB = "01_collectives"


def test_what_each_rank_had_and_has(reference):
    shown = [text_of(cell) for cell in reference.cells.values() if cell.source.startswith("show(")]
    assert len(shown) == 8
    assert "rank 3: 30 31 32 33 becomes 0 1 2 3" in shown[0]  # broadcast
    assert "rank 0: 0 1 2 3 becomes 60 64 68 72" in shown[1]  # reduce
    assert "rank 3: 30 31 32 33 becomes 30 31 32 33" in shown[1]
    assert "rank 2: 20 21 22 23 becomes 2 12 22 32" in shown[6]  # all-to-all


def test_bytes_are_counted_and_the_tree_is_drawn(reference):
    through_rank_0, direct = text_of(reference.cell_with("def count(")).split("all_reduce")
    assert "rank 0:  192.0 KiB out,  192.0 KiB in" in through_rank_0
    assert "rank 1:   64.0 KiB out,   64.0 KiB in" in through_rank_0
    assert re.findall(r"rank (\d): +96\.0 KiB out, +96\.0 KiB in", direct) == list("0123")
    flat, tree = (cell for cell in reference.cells.values() if cell.source.startswith("draw("))
    assert "3 rounds" in flat.outputs[0].data["text/html"]
    assert "2 rounds" in tree.outputs[0].data["text/html"]


def test_a_cell_that_does_not_parse_gets_no_points_for_its_old_function(reference):
    """The kernel still has the reference's function."""
    broken = reference.run("reduce", "def reduce(tensor, root):\n    return (")
    assert errors(broken)
    shown = text_of(reference.run("test_reduce"))
    reference.run("reduce")
    assert "reduce: 0 of 3 points" in shown
    assert "the cell that defines reduce does not parse" in shown
    assert "reduce: 3 of 3 points" in text_of(reference.run("test_reduce"))


def test_the_line_that_calls_a_helper_is_named(reference):
    wrong = reference.texts["all_gather"].replace("exchange(chunks[rank], dst", "exchange(chunks[rank], dst + 9")
    assert wrong != reference.texts["all_gather"]
    with reference.changed({"all_gather": wrong}):
        shown = text_of(reference.run("test_all_gather"))
    assert "called in all_gather, cell [" in shown
    assert "exchange(chunks[rank], dst + 9" in shown


def test_hidden_tests_are_announced_beside_the_visible_score(reference):
    handed_out = next(cell for cell in build_labs.release_notebook(LAB).cells if cell.id == "test_gather")
    shown = text_of(reference.run("test_gather", handed_out.source))
    assert "gather: 2 of 2 points; hidden tests follow at hand-in" in shown
    assert "hidden" not in text_of(reference.run("test_gather"))
