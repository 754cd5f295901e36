"""Each answer in words has a rubric with as many lines as points, and three answers that show how to use it."""

import re

import pytest

pytest.importorskip("nbgrader")

from ringzero_course.grading import build_labs

COUNTS = {
    **dict.fromkeys(("the first", "the second", "the third"), 1),
    **dict.fromkeys(("the first two", "the first and the third", "the second and the third"), 2),
    "all three": 3,
}


def answers(notebook):
    """The cells that a person grades."""
    return [
        cell
        for cell in build_labs.solution_cells(notebook)
        if cell.cell_type == "markdown" and cell.metadata.nbgrader.grade
    ]


@pytest.mark.parametrize("lab", build_labs.labs())
def test_a_rubric_has_a_line_for_each_point_and_three_answers(lab):
    (cell,) = answers(build_labs.source_notebook(lab))
    lines, _, examples = cell.source.partition("\nThree answers and their points:\n")
    assert re.findall(r"^(\d)\. ", lines, re.MULTILINE) == [str(n + 1) for n in range(cell.metadata.nbgrader.points)]
    found = re.findall(r"^((?:> .*\n)+)\n(\d) points?: ([^.]*)\.", examples, re.MULTILINE)
    assert len(found) == 3
    points = [int(given) for _, given, _ in found]
    assert points[0] == cell.metadata.nbgrader.points > points[1] > points[2] == 0
    assert [COUNTS.get(reason, 0) for _, _, reason in found] == points, "the reason names the lines that give points"


@pytest.mark.parametrize("lab", build_labs.labs())
def test_no_line_of_a_rubric_reaches_students(lab):
    (cell,) = answers(build_labs.source_notebook(lab))
    released = "\n".join(cell.source for cell in build_labs.release_notebook(lab).cells)
    inside = [line for line in cell.source.split("\n") if len(line) > 40]
    assert len(inside) > 10
    assert [line for line in inside if line in released] == []
