"""Closed forms against the schedules they describe, and against what was measured to make them."""

import random
import subprocess
import sys
from inspect import signature

import numpy as np
import pytest

from ringzero import collectives as c
from ringzero.costs import alpha_beta as ab
from ringzero.costs import nccl

EVERY = [(collective, name) for collective, named in c.ALGORITHMS.items() for name in named]


def pairs(collective, name, n):
    """``(schedule, coefficients)`` for n ranks, for a choice of the options that have a cost."""
    generator, formula = c.ALGORITHMS[collective][name], getattr(ab, f"{name}_{collective}_coefficients")
    takes = c.options(collective, name)
    if "shape" in takes:
        for shape in c.shapes(n, len(signature(formula).parameters)):
            yield generator(n, shape=shape), formula(*shape)
        return
    yield generator(n), formula(n)
    for option, values in {"chunks": [2, 5], "servers": [n, (n + 1) // 2]}.items():
        for value in values if option in takes else []:
            yield generator(n, **{option: value}), formula(n, value)


@pytest.mark.parametrize(("collective", "name"), EVERY)
def test_the_formula_is_the_schedule_counted(collective, name):
    """Rounds are the alphas; the busiest rank of each round gives the bytes moved and reduced one after another."""
    legal = set(c.world_sizes(collective, name, 40))
    for n in sorted(legal | ({128} if 39 not in legal else {100, 128})):
        for schedule, coefficients in pairs(collective, name, n):
            moved = reduced = 0
            for round in schedule.rounds:
                moved += max(np.bincount(round.src).max(), np.bincount(round.dst).max())
                reduced += np.bincount(round.dst, weights=round.reduce).max()
            counted = (len(schedule.rounds), moved / schedule.pieces, reduced / schedule.pieces)
            assert coefficients == pytest.approx(counted, abs=1e-12), schedule


def test_the_depth_of_two_trees_holds_for_every_number_of_ranks():
    """It was found by looking and not by reasoning: the round in which the last rank has the first piece."""
    for n in [*range(1, 400), 1000, 1023, 1024, 1025, 4095, 4096]:
        assert len(c.double_binary_tree_broadcast(n).rounds) == ab.double_binary_tree_broadcast_coefficients(n)[0]


def test_published_shapes_of_the_costs():
    """Thakur, Rabenseifner & Gropp 2005 for powers of two; the errata of the lecture slides."""
    for power in range(1, 12):
        n = 2**power
        exact = 2 * (n - 1) / n
        assert ab.recursive_doubling_all_reduce_coefficients(n) == (power, power, power)
        assert ab.rabenseifner_all_reduce_coefficients(n) == (2 * power, exact, exact / 2)
        assert ab.bruck_all_to_all_coefficients(n) == (power, power / 2, 0)
        assert ab.torus_2d_all_reduce_coefficients(n, n)[1] == 2 * (n * n - 1) / n**2
        assert ab.mesh_2d_all_reduce_coefficients(n, n)[1] == 2 * exact
    assert ab.rabenseifner_all_reduce_coefficients(12) == (8, 2 + 14 / 8, 1 + 7 / 8)
    assert ab.double_binary_tree_all_reduce_coefficients(64, 10**6)[1] == pytest.approx(2, rel=1e-4)
    assert ab.binary_tree_all_reduce_coefficients(64, 10**6)[1] == pytest.approx(4, rel=1e-4)


def test_the_ring_reaches_the_lower_bound():
    for world_size in range(1, 200):
        assert ab.ring_all_reduce_coefficients(world_size)[1] == ab.all_reduce_lower_bound(world_size)


def test_the_best_number_of_pieces_is_best():
    world_size, size, alpha, beta = 8, 1e9, 5e-6, 1e-11

    def cost(chunks):
        return ab.seconds(ab.ring_broadcast_coefficients(world_size, chunks), size, alpha, beta)

    best = ab.best_broadcast_chunks(world_size, size, alpha, beta)
    assert min(range(1, 1000), key=cost) in (int(best), int(best) + 1)
    assert ab.best_broadcast_chunks(2, size, alpha, beta) == 1.0


@pytest.mark.parametrize(
    "formula",
    [
        ab.ring_broadcast_coefficients,
        ab.ring_reduce_coefficients,
        ab.binary_tree_all_reduce_coefficients,
        ab.double_binary_tree_broadcast_coefficients,
        ab.double_binary_tree_all_reduce_coefficients,
    ],
)
@pytest.mark.parametrize("world_size", [3, 8, 100])
def test_the_best_number_of_pieces_is_best_whatever_the_pipeline(formula, world_size):
    size, alpha, beta = 1e8, 5e-6, 1e-11

    def cost(chunks):
        return ab.seconds(formula(world_size, chunks), size, alpha, beta)

    best = ab.best_chunks(formula, world_size, size, alpha, beta)
    assert min(range(1, 1000), key=cost) in (int(best), int(best) + 1)
    assert ab.best_chunks(formula, 1, size, alpha, beta) == 1.0


@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter"])
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_nccl_s_primitives_send_and_add_as_often_as_the_ring(collective, n):
    schedule, names = c.ALGORITHMS[collective]["ring"](n), nccl.ring_primitives(collective, n)
    assert sum("send" in name.lower() for name in names) == len(schedule.rounds)
    assert sum("recv" in name for name in names) == len(schedule.rounds)
    assert sum("Reduce" in name for name in names) == sum(round.reduce.all() for round in schedule.rounds)


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_nccl_s_chain_is_one_primitive_a_rank(collective):
    for n in range(2, 9):
        assert len(nccl.ring_primitives(collective, n)) == n
    assert nccl.ring_primitives(collective, 1) == []


def test_nccl_s_protocols():
    assert [nccl.payload_fraction(p) for p in ("Simple", "LL", "LL128")] == [1, 0.5, 120 / 128]


def test_alpha_and_beta_are_found_again():
    """Times made from known alpha and beta with 2 % noise give both back within 5 %."""
    rng = random.Random(1)
    sizes = [2**k for k in range(12, 27)]
    coefficients = ab.ring_all_reduce_coefficients(4)
    times = [ab.seconds(coefficients, s, 30e-6, 5e-10) * rng.uniform(0.98, 1.02) for s in sizes]
    alpha, beta = ab.fit_alpha_beta(coefficients, sizes, times)
    assert alpha == pytest.approx(30e-6, rel=0.05)
    assert beta == pytest.approx(5e-10, rel=0.05)


def test_busbw_of_a_ring_is_the_link_whatever_the_world_size():
    """The reason for the factor: a ring on links of 10 GB/s shows a busbw of 10 GB/s for every N."""
    for world_size in (2, 3, 8, 100):
        elapsed = ab.seconds(ab.ring_all_reduce_coefficients(world_size), 1e9, alpha=0.0, beta=1e-10)
        assert ab.bus_bandwidth("all_reduce", world_size, 1e9, elapsed) == pytest.approx(10e9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ab.ring_all_reduce_coefficients(0), "world_size is 0; give at least 1 rank"),
        (lambda: ab.bus_bandwidth_factor("allsum", 2), "collective is allsum; it is one of all_reduce"),
        (lambda: ab.ring_broadcast_coefficients(4, 0), "chunks is 0; cut the buffer into at least 1"),
        (lambda: ab.double_binary_tree_reduce_coefficients(1, 0), "chunks is 0; cut the buffer into at least 1"),
        (lambda: ab.recursive_doubling_all_gather_coefficients(12), "world_size is 12; recursive doubling takes a po"),
        (lambda: ab.parameter_server_all_reduce_coefficients(4, 5), "servers is 5; with 4 ranks it is 1 to 4"),
        (lambda: nccl.ring_primitives("gather", 4), "collective is gather; NCCL has a ring for all_reduce, all_gather"),
        (lambda: nccl.ring_primitives("reduce", 0), "world_size is 0; give at least 1 rank"),
        (lambda: nccl.payload_fraction("LL64"), "protocol is LL64; it is one of Simple, LL, LL128"),
        (lambda: ab.mesh_2d_all_reduce_coefficients(0, 4), "world_size is 0; give at least 1 rank"),
        (lambda: ab.fit_alpha_beta((1, 1, 0), [8, 8], [1, 1]), r"sizes are \[8, 8\]; two different sizes are needed"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_costs_import_nothing_but_math():
    code = "import sys; import ringzero.costs.alpha_beta; print(sorted({'torch', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "module",
    [
        "costs.alpha_beta",
        "costs.nccl",
        "collectives.schedule",
        "collectives.algorithms",
        "figures.palette",
        "figures.chart",
    ],
)
def test_examples_in_docstrings(module):
    import doctest
    import importlib

    assert doctest.testmod(importlib.import_module(f"ringzero.{module}")).failed == 0
