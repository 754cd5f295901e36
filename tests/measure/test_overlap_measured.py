"""This machine measured, steps run beside their prediction, the sentence about where they part. No time asserted."""

import json

import pytest
from click.testing import CliRunner

from ringzero.cli import main
from ringzero.data_parallel.buckets import assign
from ringzero.measure import machine, training
from ringzero.record.operation import COMPUTE, Operation
from ringzero.steps import unit
from ringzero.steps.difference import first_difference, phases
from ringzero.steps.machine import load
from ringzero_course.bench import overlap

SMALL = training.Shape(8, (64, 96, 64))


@pytest.fixture(scope="module")
def measured():
    return machine.measure(machine.OneNode(2), [(4, 64, 96), (4, 96, 64), (16, 64, 96)], sizes=(2**10, 2**16), tries=2)


def test_a_machine_is_measured(measured):
    found, spread, reference = measured
    assert measured.now(reference / 2).flops == pytest.approx(2 * found.flops)
    assert (found.nodes, found.ranks_per_node) == (1, 2)
    assert [row[:3] for row in found.products] == [(4, 64, 96), (4, 96, 64), (16, 64, 96)]
    assert all(rate > 0 for row in found.products for rate in row[3:])
    assert set(found.collectives) == {
        (c, g) for c in ("all_reduce", "reduce_scatter", "all_gather") for g in ("all", "node")
    }
    for collective in ("all_reduce", "reduce_scatter", "all_gather"):
        assert [size for size, _ in found.measured[collective, "all"]] == [2**10, 2**16]
        seconds, factor = found.beside_computing(collective, 2**16)
        assert seconds >= found.seconds(collective, 2**16) > 0
        assert factor >= 1
    assert found.hooks > 0
    assert found.meeting >= 0
    assert found.adam_seconds(10) > 0
    assert spread >= 0


def test_every_way_is_run_and_predicted(measured):
    found = measured.machine
    taken = machine.OneNode(2).launch(training.measured, list(training.WAYS), SMALL, 1, timeout=300).returns
    for way in training.WAYS:
        assert training.step_seconds(taken, way) > 0
        predicted = training.predicted(way, SMALL, found)
        computing = sum(each.forward + each.backward for each in SMALL.units(found))
        assert predicted.seconds > computing
        if way == training.NOTHING_SENT:
            elements = sum(inputs * outputs + outputs for inputs, outputs in SMALL.sides)
            assert predicted.seconds == pytest.approx(computing + found.adam_seconds(elements))


def test_a_step_is_traced_and_drawn_beside_its_prediction(measured):
    found = measured.machine
    ranks = machine.OneNode(2).launch(training.traced, "DDP, buckets of 1 MiB", SMALL, 1, trace=True, timeout=300)
    begin = min(ranks.returns)
    last = [op for op in ranks.trace if op.start >= begin]
    computed = [op.kind for op in last if op.rank == 0 and op.stream == COMPUTE]
    assert computed == ["forward", "backward", "optimizer"]
    predicted = training.predicted("DDP, buckets of 1 MiB", SMALL, found).operations
    sent = [op.bytes for op in last if op.rank == 0 and op.kind == "all_reduce"]
    assert sent == [op.bytes for op in predicted if op.kind == "all_reduce"]
    assert "rank 0" in first_difference(last, predicted, begin=begin) or "instead of" in first_difference(
        last, predicted
    )


def test_buckets_on_paper_are_those_of_ddp():
    """``steps`` may not import torch, so it cuts by itself: the same cuts."""
    from torch import nn

    sizes = [(30, 1), (500, 20), (7,), (300, 300, 2)]
    units = [unit.Unit("", of_unit, 0, 0) for of_unit in sizes]
    parameters = [
        nn.Parameter(nn.init.zeros_(nn.Linear(n, 1, bias=False).weight)) for of_unit in sizes for n in of_unit
    ]
    for cap, first in ((2048, 1024), (400, 400), (10**6, 100)):
        ours = [each.elements for each in unit.buckets(units, cap, 4, first)]
        theirs = assign(reversed(parameters), cap / 2**20, first / 2**20)
        assert ours == [sum(p.numel() for p in bucket) for bucket in theirs]


def test_a_link_s_line():
    """Latency of the smallest message, the rate between the two largest, of the slower rank; never a rate of 0."""
    one, other = [(10, 1.0), (100, 2.0), (300, 4.0)], [(10, 2.0), (100, 3.0), (300, 7.0)]
    points = machine._slowest_of([one, other])
    assert points == ((10, 2.0), (100, 3.0), (300, 7.0))
    assert machine._line(points) == (2.0, (7 - 3) / 200)
    assert machine._line([(10, 1.0), (100, 5.0), (300, 3.0)]) == (1.0, 3.0 / 300)


def op(kind, start, end, stream=COMPUTE, wait=None):
    return Operation(kind, 0, start, wait, end, stream)


PREDICTED = [op("forward", 0, 0.05), op("forward", 0.05, 0.1), op("all_reduce", 0.05, 0.4, "communication", 0.3),
             op("backward", 0.1, 0.3), op("optimizer", 0.4, 0.5)]  # fmt: skip


def test_phases_of_a_rank():
    found = phases(PREDICTED)
    assert [phase.name for phase in found] == ["forward", "backward", "waiting for communication", "optimizer"]
    assert [phase.start for phase in found] == pytest.approx([0, 0.1, 0.3, 0.4])
    assert [phase.end for phase in found] == pytest.approx([0.1, 0.3, 0.4, 0.5])


def test_a_pass_that_waits_inside_is_as_long_as_it_computes():
    traced = [op("backward", 1.0, 1.5), op("all_reduce", 1.1, 1.4, "communication", 1.3),
              op("all_reduce", 1.1, 1.5, "communication", 1.35), op("optimizer", 1.5, 1.6)]  # fmt: skip
    computing, waiting, optimizer = phases(traced)
    assert (computing.name, waiting.name, optimizer.name) == ("backward", "waiting for communication", "optimizer")
    assert (computing.seconds, waiting.seconds, optimizer.seconds) == pytest.approx((0.3, 0.2, 0.1))


def test_the_first_difference_is_named():
    late = [op("forward", 5.0, 5.1), op("backward", 5.1, 5.3), op("optimizer", 5.6, 5.7)]
    assert first_difference(late, PREDICTED) == (
        "The first difference is in waiting for communication: 300 ms instead of 100, from 300 ms on."
    )
    assert first_difference(PREDICTED, PREDICTED) == "No part of rank 0's step is more than 20% from its prediction."
    assert first_difference([*PREDICTED, op("forward", 0.5, 0.6)], PREDICTED) == (
        "After 500 ms the predicted step has ended, and rank 0 did forward."
    )
    assert first_difference(PREDICTED[:-1], PREDICTED) == (
        "After 400 ms optimizer was predicted, and rank 0's step has ended."
    )
    other = [op("forward", 0, 0.1), op("optimizer", 0.1, 0.3)]
    assert first_difference(other, PREDICTED) == "After 100 ms backward was predicted, and rank 0 did optimizer."


def test_the_bench_runs(monkeypatch):
    monkeypatch.setattr(overlap, "BUSY_TRIES", 1)  # this machine is busy with other tests
    models, ways = {"12 equal layers"}, ["naive", "ZeRO-3"]
    how = {"models": models, "ways": ways, "sizes": (2**10, 2**16), "tries": 2}
    made = list(overlap.rows(links=(overlap.LOOPBACK,), steps=1, **how))
    assert [row["metric"] for row in made[:2]] == ["step time"] * 2
    assert {row["metric"] for row in made} >= {"while measuring", "median error", "largest error"}


def test_the_summary_counts_pairs_in_order():
    found = {
        ("x", "m", "a"): (1.0, 1.1),
        ("x", "m", "b"): (2.0, 2.0),
        ("x", "m", "c"): (3.0, 1.5),
        ("y", "m", "a"): (9, 9),
    }
    rows = {row["metric"]: row["ours"] for row in overlap.summary(found)}
    assert rows["order of 3 pairs"] == pytest.approx(2 / 3)
    assert rows["largest error"] == pytest.approx(1.0)


def test_the_command_saves_what_it_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "SHAPES", ((4, 64, 64),))
    monkeypatch.setattr(machine.measure, "__defaults__", (((4, 64, 64),), (2**10, 2**14), 2))
    file = tmp_path / "here.json"
    result = CliRunner().invoke(main, ["measure", "--json", str(file)])
    assert result.exit_code == 0, result.output
    assert "beside computing" in result.output
    assert load(file).ranks == 2
    assert json.loads(file.read_text())["ranks_per_node"] == 2


def test_a_busy_machine_is_said(monkeypatch):
    found = load_small()
    monkeypatch.setattr(machine, "measure", lambda cluster: machine.Measured(found, 0.8, 1.0))
    result = CliRunner().invoke(main, ["measure"])
    assert "this machine is busy: equal work took up to 80% longer" in result.output
    monkeypatch.setattr(machine, "measure", lambda cluster: machine.Measured(found, 0.1, 1.0))
    assert "busy" not in CliRunner().invoke(main, ["measure"]).output


def load_small():
    from ringzero.steps.machine import Machine

    lines = {("all_reduce", "all"): ((1e-3, 1e-9),)}
    return Machine("a machine", 1, 2, 1e9, 1e9, lines, {}, products=((4.0, 8.0, 8.0, 1e9, 1e9),))


REFUSED = {
    "--ranks is 1; give 2 or more": ["--ranks", "1"],
    "two nodes need an even": ["--ranks", "3", "--inter-node", "1gbit"],
}


@pytest.mark.parametrize("says", REFUSED)
def test_what_cannot_be_measured_is_refused(says):
    result = CliRunner().invoke(main, ["measure", *REFUSED[says]])
    assert result.exit_code == 1
    assert says in result.output
