"""Predictions beside measurements: the model is the machine probed; both run one schedule. No time is asserted."""

import json
import types

import pytest
from click.testing import CliRunner

from ringzero.cli import main
from ringzero.collectives import ALGORITHMS, verify
from ringzero.collectives.compose import segmented
from ringzero.collectives.program import Send, program
from ringzero.collectives.ring import ring_all_reduce
from ringzero.measure import prediction
from ringzero.measure.links import fit_links
from ringzero.network import critical_path, emulated_cluster, laptop, price
from ringzero.ranks.cluster import missing_ability
from ringzero_course.lab.nodes import OneNode

emulated = pytest.mark.skipif(missing_ability() is not None, reason=f"no emulated cluster here: {missing_ability()}")
TRUTH = emulated_cluster(2, 3, 25e6, inter_node_alpha=2e-4, alpha=7e-5, bandwidth=8e8)


def pretend(answer, nodes=2, ranks_per_node=3, one_rank=None):
    """A cluster whose every launch returns what ``answer(arguments)`` says on all ranks, or ``one_rank`` on one."""
    world_size = nodes * ranks_per_node

    def launch(fn, *args, timeout):
        others = [answer(*args)] * (world_size - 1)
        return types.SimpleNamespace(returns=[*others, one_rank or others[0]])

    return types.SimpleNamespace(nodes=nodes, ranks_per_node=ranks_per_node, world_size=world_size, launch=launch)


def test_the_model_is_the_machine_that_was_probed():
    def probe(ranks, sizes, tries):
        inside = [price(ring_all_reduce(ranks), size, laptop(ranks, 7e-5, 8e8)).seconds for size in sizes]
        credit = 25e6 * 1e-3  # bytes that a link lets through at once
        return inside, [2e-4 + max(size - credit, 0) / 25e6 for size in sizes]

    found = fit_links(pretend(probe, one_rank=([0.0] * 4, [0.0] * 4)))  # slower ranks count
    assert found.shape == TRUTH.shape
    assert found.alpha == pytest.approx(TRUTH.alpha)
    assert found.bandwidth == pytest.approx(TRUTH.bandwidth)


def test_on_one_node_all_ranks_share_one_bus():
    def probe(ranks, sizes, tries):
        return [price(ring_all_reduce(ranks), size, laptop(ranks, 7e-5, 8e8)).seconds for size in sizes], [0.0] * 4

    found = fit_links(pretend(probe, nodes=1, ranks_per_node=4))
    assert found.shape == (4,)
    assert (found.alpha[0], found.bandwidth[0]) == pytest.approx((7e-5, 8e8))


def test_measured_is_the_slowest_rank_of_the_best_try():
    names, asked = ("ring", "double_binary_tree", "hierarchical_scattered"), []

    def answer(calls, size, tries):
        asked.append((calls, size, tries))
        return [[3.0, 2.0, 9.0]] * len(calls)

    cluster = pretend(answer, one_rank=[[4.0, 5.0, 1.0]] * len(names))
    found = prediction.compare(cluster, TRUTH, names, sizes=(1000, 2000), seconds=1e-9)
    assert [(row.algorithm, row.size) for row in found] == [(name, s) for s in (1000, 2000) for name in names]
    assert {row.measured for row in found} == {4.0}
    calls, size, tries = asked[0]
    assert (size, tries) == (1000, 5)
    for row, (name, its) in zip(found, calls, strict=False):
        schedule = ALGORITHMS["all_reduce"][name](6, **its)
        assert row.algorithm == name
        assert row.predicted == critical_path(schedule, 1000, TRUTH)
        assert row.in_step == price(schedule, 1000, TRUTH).seconds
    assert [its for _, its in calls] == [{}, {"chunks": prediction.PIECES}, {"shape": (2, 3)}]


@pytest.mark.parametrize("name", ["ring", "binomial", "recursive_doubling"])
@pytest.mark.parametrize("megabytes", [1, 4, 10, 24])
def test_a_large_chunk_is_cut_in_the_segments_that_ranks_send(name, megabytes):
    size = megabytes * 2**20
    schedule = ALGORITHMS["all_reduce"][name](6)
    run = prediction.in_segments(schedule, size)
    verify(run)
    sends = [sum(isinstance(step, Send) for step in program(schedule, rank, size // 4, 4).steps) for rank in range(6)]
    assert run.messages_sent().tolist() == sends
    assert run.bytes_sent(size // 4, 4).tolist() == pytest.approx(schedule.bytes_sent(size // 4, 4).tolist(), rel=1e-5)


def test_a_chunk_cannot_be_cut_into_nothing():
    with pytest.raises(ValueError, match="at least 1"):
        segmented(ring_all_reduce(2), 0)


def test_segments_let_the_way_back_begin_before_the_way_there_has_ended():
    whole = ALGORITHMS["all_reduce"]["binomial"](4)
    model = emulated_cluster(2, 2, 125e6, inter_node_alpha=0, alpha=0, bandwidth=1e15)
    size = 2**22
    assert critical_path(whole, size, model) == pytest.approx(2 * size / 125e6)
    assert critical_path(prediction.in_segments(whole, size), size, model) == pytest.approx(1.5 * size / 125e6)


def test_a_page_without_a_cluster_compares_on_one_node():
    node = OneNode(2)
    model = fit_links(node, tries=2)
    assert model.shape == (2,)
    (row,) = prediction.compare(node, model, names=("hierarchical_scattered",), sizes=(4096,), seconds=1e-6)
    assert row.measured > 0
    assert row.predicted == critical_path(ring_all_reduce(2), 4096, model)


@emulated
def test_bench_prediction_writes_its_rows(tmp_path):
    file = tmp_path / "rows.json"
    small = ["--rates", "1gbit", "--algorithms", "ring,hierarchical_scattered", "--sizes", "64K", "--seconds", "0.01"]
    done = CliRunner().invoke(main, ["bench", "prediction", *small, "--json", str(file)])
    assert done.exit_code == 0, done.output
    ring, ours, faster = json.loads(file.read_text())
    assert ring["name"] == "ring all_reduce, 65536 bytes, 1gbit"
    assert {row["peer_name"] for row in (ring, ours, faster)} == {"predicted"}
    assert ours["ratio"] == pytest.approx(ours["peer"] / ours["ours"])
    assert faster["metric"] == "ring's time / its own"
    assert faster["ours"] == pytest.approx(ring["ours"] / ours["ours"])
    assert faster["peer"] == pytest.approx(ring["peer"] / ours["peer"])
    assert faster["ratio"] == pytest.approx(faster["ours"] / faster["peer"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rates", "1gbps"], "'1gbps' is not a rate"),
        (["--rates", "none"], "'none' is not a rate"),
        (["--algorithms", "ring,rong"], "'rong' is none of ring, flat"),
        (["--sizes", "1X"], "'1X' is not a list of sizes"),
    ],
)
def test_bad_options_are_named(arguments, message):
    done = CliRunner().invoke(main, ["bench", "prediction", *arguments])
    assert done.exit_code != 0
    assert message in done.output
