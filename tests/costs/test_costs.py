"""Closed forms against the schedules they describe, and against what was measured to make them."""

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from ringzero.collectives import ALGORITHMS
from ringzero.costs import nccl, nccl_tuner
from ringzero.costs.page import alpha_beta as ab
from ringzero.costs.page.coefficients import COEFFICIENTS
from ringzero.network import coefficients
from ringzero.network.nccl_rings import primitives
from tests.algorithms import priced_options

BOOK = Path(__file__).parents[2] / "book"
ALL_REDUCE = COEFFICIENTS["all_reduce"]


FORMULAS = [(collective, name) for collective, named in COEFFICIENTS.items() for name in named]


@pytest.mark.parametrize(("collective", "name"), FORMULAS)
def test_the_formula_is_the_schedule_counted(collective, name):
    for n in [*range(1, 41), 100, 128]:
        for options in priced_options(collective, name, n):
            counted = coefficients(ALGORITHMS[collective][name](n, **options))
            assert COEFFICIENTS[collective][name](n, **options) == pytest.approx(counted, abs=1e-12), (n, options)


def test_the_depth_of_two_trees_holds_for_every_number_of_ranks():
    """The formula was found by looking at the round in which the last rank has the first piece, not by reasoning."""
    for n in [*range(1, 400), 1000, 1023, 1024, 1025, 4095, 4096]:
        made, formula = (table["broadcast"]["double_binary_tree"](n) for table in (ALGORITHMS, COEFFICIENTS))
        assert len(made.rounds) == formula[0]


def test_published_shapes_of_the_costs():
    """Thakur, Rabenseifner & Gropp 2005 for powers of two; the errata of the lecture slides."""
    for power in range(1, 12):
        n = 2**power
        exact = 2 * (n - 1) / n
        assert ALL_REDUCE["recursive_doubling"](n) == (power, power, power)
        assert ALL_REDUCE["rabenseifner"](n) == (2 * power, exact, exact / 2)
    assert ALL_REDUCE["rabenseifner"](12) == (8, 2 + 14 / 8, 1 + 7 / 8)
    assert ALL_REDUCE["double_binary_tree"](64, 10**6)[1] == pytest.approx(2, rel=1e-4)


PIPELINES = [
    ("broadcast", "ring"),
    ("broadcast", "double_binary_tree"),
    ("all_reduce", "double_binary_tree"),
]


@pytest.mark.parametrize(("collective", "name"), PIPELINES)
def test_the_best_number_of_pieces_is_best(collective, name):
    formula, machine = COEFFICIENTS[collective][name], (1e8, 5e-6, 1e-11)
    for world_size in (3, 8, 100):
        cost = [ab.seconds(formula(world_size, chunks), *machine) for chunks in range(1, 1000)]
        best = ab.best_chunks(formula, world_size, *machine)
        assert 1 + int(np.argmin(cost)) in (int(best), int(best) + 1)
        if (collective, name) == ("broadcast", "ring"):
            assert best == pytest.approx(math.sqrt((world_size - 2) * 1e8 * 1e-11 / 5e-6))
    assert ab.best_chunks(formula, 1, *machine) == 1.0


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter"])
def test_nccl_s_primitives_send_and_add_as_often_as_the_ring(collective):
    for n in (1, 2, 3, 8):
        schedule, names = ALGORITHMS[collective]["ring"](n), nccl.ring_primitives(collective, n)
        assert sum("send" in name.lower() for name in names) == len(schedule.rounds)
        assert sum("recv" in name for name in names) == len(schedule.rounds)
        assert sum("Reduce" in name for name in names) == sum(round.reduce.all() for round in schedule.rounds)


def test_steps_are_of_a_loop_of_n_chunks_and_not_of_a_chunk():
    """Of the N chunks of a loop a rank meets one once and the others twice: 2N-1 steps."""
    for n in (2, 3, 8):
        schedule = ALGORITHMS["all_reduce"]["ring"](n)
        for rank in range(n):
            sent = [int(round.chunk[round.src == rank][0]) for round in schedule.rounds]
            received = [int(round.chunk[round.dst == rank][0]) for round in schedule.rounds]
            assert sent[1:] == received[:-1]  # a step passes on what it received, so steps are one more than rounds
            met = [*sent, received[-1]]
            assert len(met) == len(nccl.ring_primitives("all_reduce", n)) == 2 * n - 1
            assert sorted(np.bincount(met, minlength=n)) == [1, *[2] * (n - 1)]


def test_a_loop_reads_each_chunk_of_the_input_once_and_writes_each_of_the_output_once():
    for n in (2, 4, 8, 64):
        names = nccl.ring_primitives("all_reduce", n)
        assert sum("Reduce" in name or name == "send" for name in names) == n
        assert sum("Copy" in name or name == "recv" for name in names) == n


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter"])
def test_nccl_s_primitives_follow_from_the_ring_s_schedule(collective):
    for n in range(2, 17):
        schedule = ALGORITHMS[collective]["ring"](n)
        for rank in range(n):
            assert [name for name, _ in primitives(schedule, rank)] == nccl.ring_primitives(collective, n)


def test_a_switch_that_adds_beside_a_ring():
    """1 + 1/N buffers each way for 2(N-1)/N; with NCCL's 0.85 near what was measured on four to eight H100."""
    assert nccl.nvls_speedup(8) == pytest.approx(14 / 9)
    measured = json.loads((BOOK / "published_all_reduce.json").read_text())["nvls_by_gpus"]["busbw"]
    for gpus, busbw in measured.items():
        assert nccl.nvls_speedup(int(gpus), nccl_tuner.NVLS_EFFICIENCY["Hopper"]) == pytest.approx(
            busbw / 370, rel=0.03
        )


def test_nccl_s_chain_is_one_primitive_a_rank():
    for collective in ("broadcast", "reduce"):
        assert [len(nccl.ring_primitives(collective, n)) for n in range(1, 9)] == [0, *range(2, 9)]


def test_alpha_and_beta_are_found_again():
    """Times made from known alpha and beta with 2 % noise give both back within 5 %."""
    rng = random.Random(1)
    sizes = [2**k for k in range(12, 27)]
    ring = ALL_REDUCE["ring"](4)
    times = [ab.seconds(ring, s, 30e-6, 5e-10) * rng.uniform(0.98, 1.02) for s in sizes]
    alpha, beta = ab.fit_alpha_beta(ring, sizes, times)
    assert alpha == pytest.approx(30e-6, rel=0.05)
    assert beta == pytest.approx(5e-10, rel=0.05)


def test_busbw_of_a_ring_is_the_link_whatever_the_world_size():
    """The reason for the factor: a ring on links of 10 GB/s shows a busbw of 10 GB/s for every N."""
    for world_size in (2, 3, 8, 100):
        elapsed = ab.seconds(ALL_REDUCE["ring"](world_size), 1e9, alpha=0.0, beta=1e-10)
        assert ab.bus_bandwidth("all_reduce", world_size, 1e9, elapsed) == pytest.approx(10e9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ALL_REDUCE["ring"](0), "world_size is 0; give at least 1 rank"),
        (lambda: ab.bus_bandwidth_factor("allsum", 2), "collective is 'allsum'; it is one of all_reduce, reduce_scat"),
        (lambda: COEFFICIENTS["broadcast"]["ring"](4, 0), "chunks is 0; cut the buffer into at least 1"),
        (lambda: ALL_REDUCE["double_binary_tree"](1, 0), "chunks is 0; cut the buffer into at least 1"),
        (lambda: nccl.ring_primitives("gather", 4), "collective is 'gather'; it is one of all_reduce, all_gather"),
        (lambda: nccl.ring_primitives("reduce", 0), "world_size is 0; give at least 1 rank"),
        (lambda: nccl.payload_fraction("LL64"), "protocol is 'LL64'; it is one of Simple, LL, LL128"),
        (lambda: ab.fit_alpha_beta((1, 1, 0), [8, 8], [1, 1]), r"sizes are \[8, 8\]; two different sizes are needed"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
