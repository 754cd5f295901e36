"""Figures that go through a step: ZeRO-3 moment by moment, and what waits for what past the GPU's memory."""

import doctest

import pytest

from ringzero.costs import offload
from ringzero_course.figures import offloading, zero_step
from ringzero_course.figures.offloading import CPU, DOWN, GPU, UP, WAYS, Seconds, offload_step, path, steps, update
from ringzero_course.figures.zero_step import moments, zero3_step

TAKES = Seconds(forward=1, backward=2, copy=1, adam_on_gpu=0.1, adam_on_host=3)


@pytest.mark.parametrize("module", [zero_step, offloading])
def test_examples(module):
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("layers", [1, 3, 5])
def test_a_step_of_zero3_gathers_each_layer_twice_reduces_it_once_and_leaves_shards(layers):
    step = moments(layers)
    assert step[-1].collectives == 3 * layers
    assert step[-1].gradients == dict.fromkeys(range(1, layers + 1), "shard")
    assert step[-1].whole is None
    assert all(list(moment.gradients.values()).count("whole") <= 1 for moment in step)
    for moment in step:  # what computes is whole, and what is freed is not
        if "pass of layer" in moment.says:
            assert f"layer {moment.whole}" in moment.says
        if "freed" in moment.says:
            assert moment.whole is None


def test_the_stepper_of_zero3_shows_every_moment():
    figure = zero3_step(layers=2, ranks=2, start=2)
    assert "forward pass of layer 1" in figure.alt
    assert figure.html.count("collectives so far: ") >= len(moments(2))


def test_an_offloaded_step_waits_for_the_copies_and_the_cpu():
    rows, share = steps("offloaded", TAKES)
    assert share == pytest.approx(3 / (3 + 1 / 4 + 3 + 1 / 4))  # the last piece down and up has nothing beside it
    for lane in (GPU, DOWN, CPU, UP):
        for (_, _, end, _), (_, start, _, _) in zip(rows[lane], rows[lane][1:], strict=False):
            assert start >= end - 1e-9
    assert steps("all on the GPU", TAKES)[1] == pytest.approx(1)
    assert steps("all on the GPU", TAKES)[0][CPU] == []


def test_one_step_late_a_step_takes_as_long_as_the_longer_of_pass_and_update():
    assert steps("offloaded, one step late", TAKES, count=6)[1] == pytest.approx(3 / max(3, 3 + 1 / 4), abs=0.05)
    quick = TAKES._replace(adam_on_host=1)
    assert steps("offloaded, one step late", quick, count=6)[1] == pytest.approx(1)


@pytest.mark.parametrize("way", WAYS)
def test_offloaded_steps_are_drawn_with_what_they_take(way):
    figure, facts = offload_step(way, TAKES)
    assert way in figure.alt
    assert [what for what, _ in facts] == ["a step", "the GPU is busy"]


@pytest.mark.parametrize("vectors", [1, 2, 8])
@pytest.mark.parametrize("copies", [6, 12, 24])
def test_an_update_takes_as_long_as_the_formula_says(vectors, copies):
    assert f"It ends after {max(12, copies) + min(12, copies) / vectors:.3g} ms" in update(vectors, copies, 12).alt


def test_a_window_has_a_lane_for_each_slot_and_takes_what_the_formula_says():
    figure = offloading.window([1, 2, 1], 1.5, 2)
    assert "slot 1" in figure.alt
    assert "slot 2" not in figure.alt
    assert f"It ends after {offload.window_seconds([1, 2, 1], [1.5] * 3, 2):.3g} ms" in figure.alt


def test_a_layer_comes_up_faster_over_all_links():
    assert path(8e9, 1, 8, 50e9, 400e9)[1] == pytest.approx(160 + 17.5)
    figure, all_links = path(8e9, 8, 8, 50e9, 400e9)
    assert all_links == pytest.approx(20 + 17.5)
    assert "all-gather" in figure.alt


def test_another_way_is_refused():
    with pytest.raises(ValueError, match="one of all on the GPU"):
        steps("by post", TAKES)
