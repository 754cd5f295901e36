"""Lab 07: what its pictures and tables show, and the oracles of its claims beside each other."""

import random
import re

import pytest
import torch

from ringzero.lab.claims import overlap
from ringzero.lab.harness.overlap import gradient
from ringzero.lab.runs import Case, Run
from ringzero.record.operation import COMMUNICATION, COMPUTE, Operation
from ringzero.steps.machine import Machine
from ringzero.steps.run import run
from ringzero.steps.systems import data_parallel, zero
from ringzero.steps.unit import Unit
from tests.live_notebook import assert_full_marks, text_of

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


# Other solutions that are right, and answers in other forms, get every point, too.

OTHERS = {
    "least_tokens": """
def least_tokens(flops, bandwidth, n, element):
    return torch.tensor([element / 2 * flops / bandwidth * (1 - 1 / n)], dtype=torch.float64)
""",
    "reached": """
def reached(size, n, alpha, beta):
    message = size / n
    return message / (alpha + beta * message)
""",
    "largest_degree": """
def largest_degree(flops, bandwidth, width, element):
    return 1 + 2 * width * bandwidth // (element * flops)
""",
    "all_reduces": """
def all_reduces(backwards, sizes, cap, alpha, beta):
    found, bytes, time, free = [], 0, 0.0, 0.0
    for seconds, size in zip(backwards[::-1], sizes[::-1]):
        time, bytes = time + seconds, bytes + size
        if bytes >= cap:
            free = max(time, free) + alpha + beta * bytes
            found, bytes = [*found, [free - alpha - beta * bytes, free]], 0
    if bytes:
        free = max(time, free) + alpha + beta * bytes
        found += [[free - alpha - beta * bytes, free]]
    return torch.tensor(found, dtype=torch.float64)
""",
    "exposed": """
def exposed(operations):
    events = sorted((t, op.stream, d) for op in operations for t, d in ((op.start, 1), (op.end, -1)))
    running, before, seconds = {"compute": 0, "communication": 0}, 0, 0
    for time, stream, change in events:
        if running["communication"] and not running["compute"]:
            seconds += time - before
        running[stream] += change
        before = time
    return seconds
""",
    "best_cap": """
def best_cap(backwards, sizes, caps, alpha, beta):
    ends = torch.tensor([all_reduces(backwards, sizes, cap, alpha, beta)[-1][1] for cap in caps])
    return float(caps[ends.argmin()])
""",
    "forward_pass": """
def forward_pass(gathers, forwards, ahead):
    there, done = [], [0.0] * (ahead + 1)
    for gather, forward in zip(gathers, forwards):
        there.append(max(there[-1] if there else 0.0, done[-ahead - 1]) + gather)
        done.append(max(there[-1], done[-1]) + forward)
    return torch.tensor(done[-1], dtype=torch.float64)
""",
    "least_micro_batches": """
def least_micro_batches(stages, share, pieces):
    from fractions import Fraction
    share = Fraction(share).limit_denominator(10**6)
    return float(max(1, math.ceil((stages - 1) * (1 - share) / (share * pieces))))
""",
    "kept": """
def kept(i, stages, micro_batches):
    return torch.tensor([stages - i, micro_batches]).min()
""",
    "straggler": """
def straggler(enters, worth):
    charges = {rank: 0.0 for rank in range(len(enters[0]))}
    for times in enters:
        *others, (latest, rank) = sorted((time, rank) for rank, time in enumerate(times))
        half, odd = divmod(len(others), 2)
        charges[rank] += latest - (others[half][0] if odd else (others[half - 1][0] + others[half][0]) / 2)
    rank = max(charges, key=charges.get)
    if charges[rank] / len(enters) >= worth and charges[rank] >= 0.6 * sum(charges.values()):
        return [rank, charges[rank]]
""",
    "backward_pass": """
def backward_pass(layers, cap):
    n, found, works, open_bytes = dist.get_world_size(), {}, [], 0
    open_layers = []
    for i, layer in reversed(list(enumerate(layers))):
        found[i] = layer.backward() / n
        open_layers.insert(0, i)
        open_bytes += found[i].nbytes
        if open_bytes >= cap or not i:
            flat = torch.empty(open_bytes // 4)
            parts = flat.split([found[k].numel() for k in open_layers])
            for k, part in zip(open_layers, parts):
                part.copy_(found[k])
                found[k] = part
            works.append(dist.all_reduce(flat, async_op=True))
            open_layers, open_bytes = [], 0
    for work in works:
        work.wait()
    return tuple(found[i] for i in range(len(layers)))
""",
    "plan": """
def plan(nodes):
    return {"data": nodes // 4, "tensor": 8, "pipeline": 4}
""",
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_right_solutions(reference, name):
    assert_full_marks(reference, name, OTHERS[name])


def test_the_clock_is_the_librarys_for_large_and_small_caps():
    """Against a direct reading of what the lab says, on random models; the oracle rescales bytes."""
    chance = random.Random(1)
    for _ in range(100):
        layers = chance.randint(1, 9)
        backwards = [chance.uniform(0, 1) for _ in range(layers)]
        sizes = [chance.randrange(1, 10**7) for _ in range(layers)]
        cap, alpha, beta = chance.choice((1, 10**5, 2**20, 3 * 10**7)), chance.uniform(0, 1), chance.uniform(0, 1e-7)
        found = overlap.all_reduces(backwards, sizes, cap, alpha, beta)
        expected, now, free, filling = [], 0.0, 0.0, 0
        for layer in range(layers - 1, -1, -1):
            now, filling = now + backwards[layer], filling + sizes[layer]
            if filling >= cap or layer == 0:
                begin = max(now, free)
                free, filling = begin + alpha + beta * filling, 0
                expected.append((begin, free))
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
    assert overlap.prefetched(gathers, forwards, ahead) == pytest.approx(ends[-1], rel=1e-5)


def test_exposed_is_what_a_timed_step_has_exposed():
    units = [Unit(str(i), (size,), 0.0, 1.0) for i, size in enumerate((3, 900, 20, 400))]
    lines = {("all_reduce", "all"): ((0.5, 0.004),)}
    timed = run(data_parallel(units, Machine("two", 1, 2, 1.0, float("inf"), lines, {}, adam=0.0), bucket_bytes=8))
    assert timed.exposed(0) > 0
    assert overlap.exposed(timed.operations) == pytest.approx(timed.exposed(0))


def ran(numels, cap, computed, sends, gradients=None):
    """A run of ``harness.overlap`` on one of two ranks that did the same; ``sends`` are ``(start, wait, bytes)``."""
    mean = [sum(gradient(rank, i, n) for rank in (0, 1)) / 2 for i, n in enumerate(numels)]
    report = {"gradients": mean if gradients is None else gradients, "computed": computed, "asked": []}
    operations = [
        [Operation("all_reduce", rank, start, wait, 9.0, COMMUNICATION, size) for start, wait, size in sends]
        for rank in (0, 1)
    ]
    return Run(Case(2, None, None, (numels, cap), {}), None, [report, report], operations=operations)


BACKWARDS = [(1, 0.0, 1.0), (0, 2.0, 3.0)]


def test_what_is_said_of_a_backward_pass():
    right = ran([10, 10], 40, BACKWARDS, [(1.5, 3.5, 40), (3.2, 3.6, 40)])
    assert overlap.leaves_as_soon_as_it_is_full(right) is None
    assert overlap.waited_for_at_the_end(right) is None
    late = ran([10, 10], 40, BACKWARDS, [(2.5, 3.5, 40), (3.2, 3.6, 40)])
    assert "full when layer 1 was done, but it left when layer 0 had begun" in overlap.leaves_as_soon_as_it_is_full(
        late
    )
    blocked = ran([10, 10], 40, BACKWARDS, [(1.5, 1.6, 40), (3.2, 3.6, 40)])
    assert "waited for while layers had still to compute" in overlap.waited_for_at_the_end(blocked)
    synchronous = ran([10, 10], 40, BACKWARDS, [(1.5, 1.5, 40), (3.2, 3.6, 40)])
    assert "without async_op=True" in overlap.waited_for_at_the_end(synchronous)
    polled = ran([10, 10], 40, BACKWARDS, [(1.5, 3.5, 40), (3.2, 3.6, 40)])
    polled.reports[1].asked = [1.7]
    assert "rank 1 asks whether an all-reduce is over" in overlap.waited_for_at_the_end(polled)
    polled.reports[1].asked = [3.1]  # when all layers have computed
    assert overlap.waited_for_at_the_end(polled) is None
    met = ran([10, 10], 40, BACKWARDS, [(1.5, 3.5, 40), (3.2, 3.6, 40)])
    met.operations[0].append(Operation("barrier", 0, 1.8, 1.8, 1.9, COMMUNICATION))
    assert "rank 0 calls barrier" in overlap.waited_for_at_the_end(met)
    early = ran([10, 10], 40, BACKWARDS, [(0.5, 3.5, 40), (3.2, 3.6, 40)])
    assert "it left before layer 1, whose gradient" in overlap.leaves_as_soon_as_it_is_full(early)
    swapped = ran([10, 10], 40, BACKWARDS, [], gradients=[gradient(0, 1, 10), gradient(0, 0, 10)])
    swapped.reports[0].gradients = right.reports[0].gradients[::-1]
    assert overlap.gradients_are_the_mean(swapped).endswith("that is the gradient of layer 1")
    never = ran([10, 10], 40, BACKWARDS, [(1.5, None, 40), (3.2, 3.6, 40)])
    assert overlap.waited_for_at_the_end(never) is None  # what a future waits for in C++ has an end alone
    never.operations = [[op._replace(end=None) for op in some] for some in never.operations]
    assert "never waited for" in overlap.waited_for_at_the_end(never)
    one = ran([10, 10], 40, BACKWARDS, [(3.2, 3.6, 80)])
    assert overlap.one_all_reduce_a_bucket(one) == "rank 0 all-reduced 80 bytes, expected 40, 40"
    none = ran([10, 10], 40, BACKWARDS, [])
    assert overlap.one_all_reduce_a_bucket(none) == "rank 0 all-reduced no bytes, expected 40, 40"
    forwards = ran([10, 10], 40, [(0, 0.0, 1.0), (1, 2.0, 3.0)], [(1.5, 3.5, 40), (3.2, 3.6, 40)])
    assert "rank 0 computed the layers 0, 1" in overlap.last_layer_computes_first(forwards)
    short = ran([10, 10], 40, BACKWARDS, [], gradients=[gradient(0, 0, 10)])
    assert "not a list of 2 gradients" in overlap.gradients_are_the_mean(short)


POSSIBLE = {"data": 2, "tensor": 8, "pipeline": 4}


@pytest.mark.parametrize(
    "plan",
    [
        None,
        (2, 8, 4),
        {"data": 64},
        POSSIBLE | {"gpus": 64},
        POSSIBLE | {"data": 2.0},
        POSSIBLE | {"stage": 4},
        POSSIBLE | {"recomputation": True},
        POSSIBLE | {"data": 4},
    ],
)
def test_what_is_no_plan(plan):
    for claim in (overlap.the_plan_is_possible, overlap.the_plan_fits, overlap.the_plan_is_fast):
        assert claim(called(plan, 8)) is not None
        assert claim(called(POSSIBLE, 8)) is None


def called(returned, *args):
    return Run(Case(1, None, None, args, {}), None, [returned], operations=[[]])


def test_numbers_that_look_alike_are_told_apart():
    said = overlap.no_other_cap_ends_sooner(called(20, [1.0, 1.0], [10, 10], [10, 20], 1e-7, 1e-8))
    mine, best = re.findall(r"after ([\d.]+) s", said)
    assert float(mine) > float(best)
    clock = called([(1.0, 1.5000001)], [1.0], [10], 10, 0.5, 0.0)
    assert "is 1.5000001, expected 1.5 (off by 7e-08 of it)" in overlap.all_reduces_run_as_scheduled(clock)


@pytest.mark.parametrize("right", [9, 9.0, torch.tensor(9), torch.tensor([9.0])])
def test_where_both_take_as_long_it_hides(right):
    case = (2.0**40, 2.0**30, 2**13, 2)
    assert overlap.the_largest_degree(called(right, *case)) is None
    assert "just as long" in overlap.the_largest_degree(called(8, *case))
    assert "times as long" in overlap.the_largest_degree(called(10, *case))


def test_as_much_as_the_share_is_allowed():
    assert overlap.the_fewest_micro_batches(called(4, 5, 0.5, 1)) is None
    assert "4 micro-batches are enough" in overlap.the_fewest_micro_batches(called(5, 5, 0.5, 1))
    assert "more than 50 %" in overlap.the_fewest_micro_batches(called(3, 5, 0.5, 1))


@pytest.mark.parametrize("nonsense", [None, 3, "soon", [1.0], [(1.0,)], [(1.0, "late")]])
def test_nonsense_is_a_reason(nonsense):
    clock = called(nonsense, [1.0], [10], 10, 0.5, 0.1)
    assert overlap.all_reduces_run_as_scheduled(clock) is not None
    assert overlap.no_other_cap_ends_sooner(called(nonsense, [1.0], [10], [5, 10], 0.5, 0.1)) is not None
    assert overlap.names_the_straggler(called(nonsense, [[0, 5, 6, 9]], 1)) is not None
    assert overlap.the_fewest_micro_batches(called(nonsense, 8, 0.1, 1)) is not None
    assert overlap.the_largest_degree(called(nonsense, 1e12, 1e9, 7000, 2)) is not None
    assert (
        overlap.exposed_is_what_nothing_covers(called(nonsense, [Operation("x", 0, 0.0, None, 1.0, COMPUTE)]))
        is not None
    )


def test_the_straggler_is_found_where_it_was_put():
    """Of 200 records with one late rank all are named, of 200 with none, none."""
    chance = random.Random(4)
    for _ in range(200):
        late = chance.randrange(4)
        enters = [[i + chance.uniform(0, 0.01) for _ in range(4)] for i in range(20)]
        assert overlap.straggler(enters, 0.02) is None
        for times in enters:
            times[late] += 0.05
        assert overlap.straggler(enters, 0.02)[0] == late
