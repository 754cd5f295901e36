"""The figure of chapter 7: which layer's gradients leave first, and how long the step takes."""

import itertools

import pytest

from ringzero.costs.server import scheduled_step_seconds
from ringzero_course.figures.sending_order import sending_order

FORWARDS, BACKWARDS = [2 / 3] * 5, [4 / 3] * 5
TRANSFERS = ([2, 2, 2, 2, 2], [1, 1, 1, 1, 6], [6, 1, 1, 1, 1])


@pytest.mark.parametrize(
    ("transfers", "by_need", "sliced"), [*itertools.product(TRANSFERS, (False, True), (False, True))]
)
def test_a_step_takes_what_the_formula_says(transfers, by_need, sliced):
    pieces = [2 * seconds if sliced else 1 for seconds in transfers]
    rows, end = sending_order(FORWARDS, BACKWARDS, transfers, pieces, by_need)
    order, slices = "priority" if by_need else "backward", 0.5 if sliced else None
    said = scheduled_step_seconds(FORWARDS, BACKWARDS, transfers, 1.0, order, slices, header_bytes=0)
    assert end == pytest.approx(said)
    for way in ("push", "pull"):
        assert sum(stop - start for _, start, stop, _ in rows[way]) == pytest.approx(sum(transfers))
        assert all(before[2] <= after[1] + 1e-9 for before, after in itertools.pairwise(rows[way]))


def test_what_is_under_way_is_not_overtaken():
    ends = [sending_order(FORWARDS, BACKWARDS, [2] * 5, [4] * 5, True, ahead)[1] for ahead in (0, 3, 19)]
    made_first = sending_order(FORWARDS, BACKWARDS, [2] * 5, [4] * 5, False)[1]
    assert ends[0] < ends[1] < ends[2] == pytest.approx(made_first)
