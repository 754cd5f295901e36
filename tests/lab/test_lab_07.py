"""Lab 07: what its pictures and tables show, and the oracles of its claims beside each other."""

import random
import re

import pytest

from ringzero.costs.page import overlap
from ringzero.record.operation import COMMUNICATION, Operation
from ringzero.steps.machine import Machine
from ringzero.steps.run import run
from ringzero.steps.systems import data_parallel, zero
from ringzero.steps.unit import Unit
from ringzero_course.lab.runs import Case, Run
from ringzero_course.lab.subjects import overlapping
from ringzero_course.lab.subjects.overlapping import gradient
from tests.live_notebook import text_of

LAB = "07_overlap"


def test_what_tokens_and_degrees_are_needed(reference):
    shown = text_of(reference.cell_with('written("least_tokens", "reached")'))
    assert "InfiniBand NDR buckets of  1000 MB:      6,937 on 8 ranks,        8,101 on 128" in shown
    shown = text_of(reference.cell_with('written("largest_degree")'))
    assert re.search(r"70B +projection +8,192 columns: +10$", shown, re.MULTILINE)


def test_the_best_bucket_is_neither_the_smallest_nor_the_largest(reference):
    shown = text_of(reference.cell_with('written("all_reduces", "best_cap")'))
    best = [int(mb) for mb in re.findall(r"buckets of (\d+) MB end first", shown)]
    assert best == sorted(best)
    assert best[0] == 1
    assert 1 < best[1] < best[2] < 64


def test_one_layer_ahead_is_enough_where_layers_are_alike(reference):
    shown = text_of(reference.cell_with('written("forward_pass")'))
    assert "all gathers take 1 s: 48.0, 25.0, 25.0, 25.0, 25.0 s" in shown


def test_predicted_beside_measured(reference):
    cell = reference.cell_with("def timed_step(")
    shown = text_of(cell)
    rows = re.findall(r"predicted +([\d.]+) ms, measured +([\d.]+) ms; rank 0 has ([\d.]+) ms exposed", shown)
    assert len(rows) == 3
    assert all(0 < float(left) <= float(measured) for _, measured, left in rows)
    assert "<figure: Timeline" in shown


def test_a_plan_stands_beside_the_best_ones(reference):
    shown = text_of(reference.cell_with("planner.best_of_each"))
    assert re.search(r"[\d,]+ plans on 64 GPUs, of which \d+ fit", shown)
    seconds = [float(each) for each in re.findall(r"^ +([\d.]+) s, MFU", shown, re.MULTILINE)]
    assert len(seconds) == 5
    assert seconds[0] == min(seconds)
    assert seconds[-1] < 1.1 * seconds[0]


def test_the_clock_is_that_of_the_schedules():
    chance = random.Random(1)
    for _ in range(100):
        layers = chance.randint(1, 9)
        backwards = [chance.uniform(0, 1) for _ in range(layers)]
        sizes = [chance.randrange(1, 10**7) for _ in range(layers)]
        cap, alpha, beta = chance.choice((1, 10**5, 2**20)), chance.uniform(0, 1), chance.uniform(0, 1e-7)
        units = [Unit(str(i), (size,), 0.0, s) for i, (s, size) in enumerate(zip(backwards, sizes, strict=True))]
        machine = Machine("two", 1, 2, 1.0, float("inf"), {("all_reduce", "all"): ((alpha, beta),)}, {}, adam=0.0)
        timed = run(data_parallel(units, machine, bucket_bytes=cap, element=1))
        times = zip(timed.step.tasks, timed.begins, timed.ends, strict=True)
        expected = [(begin, end) for task, begin, end in times if task.kind == "all_reduce"]
        found = [(bucket.begin, bucket.end) for bucket in overlapping.clock(backwards, sizes, cap, alpha, beta)]
        assert [time for pair in found for time in pair] == pytest.approx([time for pair in expected for time in pair])


@pytest.mark.parametrize("ahead", [0, 1, 2, 5])
def test_gathering_ahead_is_that_of_the_schedules(ahead):
    chance = random.Random(ahead)
    forwards, gathers = ([chance.uniform(0.1, 2) for _ in range(8)] for _ in range(2))
    units = [Unit(str(i), (round(1e6 * s),), forwards[i], 0.0) for i, s in enumerate(gathers)]
    lines = {("all_gather", "all"): ((0.0, 1e-6),), ("reduce_scatter", "all"): ((0.0, 0.0),)}
    machine = Machine("two ranks", 1, 2, 1.0, float("inf"), lines, {}, adam=0.0)
    timed = run(zero(units, machine, 3, prefetch=ahead, element=1))
    ends = [end for task, end in zip(timed.step.tasks, timed.ends, strict=True) if task.kind == "forward"]
    assert overlapping.prefetched(gathers, forwards, ahead) == pytest.approx(ends[-1], rel=1e-5)


def test_exposed_is_what_a_timed_step_has_exposed():
    units = [Unit(str(i), (size,), 0.0, 1.0) for i, size in enumerate((3, 900, 20, 400))]
    lines = {("all_reduce", "all"): ((0.5, 0.004),)}
    timed = run(data_parallel(units, Machine("two", 1, 2, 1.0, float("inf"), lines, {}, adam=0.0), bucket_bytes=8))
    assert timed.exposed(0) > 0
    assert overlapping.exposed_seconds(timed.operations) == pytest.approx(timed.exposed(0))


def ran(numels, cap, computed, sends):
    """A run of two steps on one of two ranks that did the same; ``sends`` are ``(start, wait, bytes)``.

    The second step is as the first, 10 seconds later.
    """
    means = [sum(gradient(rank, i, n) for rank in (0, 1)) / 2 for i, n in enumerate(numels)]
    later = [(layer, 10 + begin, 10 + end) for layer, begin, end in computed]
    report = {"gradients": [*means, *(2 * mean for mean in means)], "computed": [computed, later]}
    twice = [*sends, *((10 + start, wait and 10 + wait, size) for start, wait, size in sends)]
    operations = [
        [Operation("all_reduce", rank, start, wait, 99.0, COMMUNICATION, size) for start, wait, size in twice]
        for rank in (0, 1)
    ]
    return Run(Case(2, None, None, (numels, cap), {}), None, [report, report], operations=operations)


BACKWARDS = [(1, 0.0, 1.0), (0, 2.0, 3.0)]


def test_what_is_said_of_a_backward_pass():
    leaves, waits = overlapping.leaves_as_soon_as_it_is_full, overlapping.waited_for_at_the_end

    def two(computed=BACKWARDS, first=(1.5, 3.5, 40), second=(3.2, 3.6, 40)):
        return ran([10, 10], 40, computed, [first, second])

    assert leaves(two()) is waits(two()) is None
    late = leaves(two(first=(2.5, 3.5, 40)))
    assert "bucket 0, full when layer 1 was done, left when layer 0 had begun" in late
    assert "bucket 0, full when layer 1 was done, left before that" in leaves(two(first=(0.5, 3.5, 40)))
    assert "left when another one was waited for" in leaves(two(first=(1.5, 3.1, 40)))
    assert waits(two(first=(1.5, 1.6, 40))).endswith("while layers have still to compute")
    assert "without async_op=True" in waits(two(first=(1.5, 1.5, 40)))
    assert waits(two(first=(1.5, None, 40))) is None  # what a future waits for in C++ has an end alone
    met = two()
    met.operations[0].append(Operation("barrier", 0, 1.8, 1.8, 1.9, COMMUNICATION))
    assert "rank 0 waits for its barrier" in waits(met)
    one = ran([10, 10], 40, BACKWARDS, [(3.2, 3.6, 80)])
    assert overlapping.one_all_reduce_a_bucket(one) == "rank 0 called all_reduce on 40 bytes 0 times, expected 4"
    assert "left when layer 0 had begun" in leaves(two([(0, 0.0, 1.0), (1, 2.0, 3.0)], first=(3.1, 3.5, 40)))


POSSIBLE = {"data": 2, "tensor": 8, "pipeline": 4}


@pytest.mark.parametrize(
    "plan",
    [
        None,
        (2, 8, 4),
        {"data": 64},
        POSSIBLE | {"gpus": 64},
        POSSIBLE | {"data": 2.5},
        POSSIBLE | {"stage": 4},
        POSSIBLE | {"recomputation": True},
        POSSIBLE | {"data": 4},
    ],
)
def test_what_is_no_plan(plan):
    assert overlapping.the_plan_will_do(called(plan, 8)) is not None
    assert overlapping.the_plan_will_do(called(POSSIBLE, 8)) is None


def called(returned, *args):
    return Run(Case(1, None, None, args, {}), None, [returned], operations=[[]])


def test_numbers_that_look_alike_are_told_apart():
    said = overlapping.no_other_cap_ends_sooner(called(20, [1.0, 1.0], [10, 10], [10, 20], 1e-7, 1e-8))
    mine, best = re.findall(r"after ([\d.]+) s", said)
    assert float(mine) > float(best)
    clock = called([(1.0, 1.500004)], [1.0], [10], 10, 0.5, 0.0)
    assert "is 1.500004, expected 1.5 (off by 3e-06 of it)" in overlapping.all_reduces_run_as_scheduled(clock)


def test_where_both_take_as_long_it_hides():
    assert overlapping.degree(2.0**40, 2.0**30, 2**13, 2) == 9


def test_the_degree_is_the_last_one_whose_ratio_hides():
    chance = random.Random(3)
    for _ in range(100):
        flops, bandwidth, width = chance.uniform(1e14, 1e15), chance.uniform(1e10, 1e12), chance.randrange(10**3, 10**5)
        largest = overlapping.degree(flops, bandwidth, width, 2)
        one, more = (overlap.tensor_parallel_ratio(flops, bandwidth, width, n, 2) for n in (largest, largest + 1))
        assert one <= 1 < more


def test_as_much_as_the_share_is_allowed():
    assert overlapping.micro_batches(5, 0.5, 1) == 4
    assert overlapping.micro_batches(1, 0.5, 2) == 1


@pytest.mark.parametrize("nonsense", [None, 3, "soon", [1.0], [(1.0,)], [(1.0, "late")]])
def test_nonsense_is_a_reason(nonsense):
    clock = called(nonsense, [1.0], [10], 10, 0.5, 0.1)
    assert overlapping.all_reduces_run_as_scheduled(clock) is not None
    assert overlapping.no_other_cap_ends_sooner(called(nonsense, [1.0], [10], [5, 10], 0.5, 0.1)) is not None
    assert overlapping.names_the_straggler(called(nonsense, [[0, 5, 6, 9]], 1)) is not None


def test_the_straggler_is_found_where_it_was_put():
    """Of 200 records with one late rank all are named, of 200 with none, none."""
    chance = random.Random(4)
    for _ in range(200):
        late = chance.randrange(4)
        enters = [[i + chance.uniform(0, 0.01) for _ in range(4)] for i in range(20)]
        assert overlapping.late_rank(enters, 0.02) is None
        for times in enters:
            times[late] += 0.05
        assert overlapping.late_rank(enters, 0.02)[0] == late
