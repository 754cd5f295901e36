"""Closed forms against the schedules they describe, and against what was measured to make them."""

import random
import subprocess
import sys

import numpy as np
import pytest

from ringzero import collectives as c
from ringzero.costs import alpha_beta as ab

PAIRS = {
    "ring all_reduce": (c.ring_all_reduce, ab.ring_all_reduce_coefficients),
    "ring reduce_scatter": (c.ring_reduce_scatter, ab.ring_reduce_scatter_coefficients),
    "ring all_gather": (c.ring_all_gather, ab.ring_all_gather_coefficients),
    "flat all_reduce": (c.flat_all_reduce, ab.flat_all_reduce_coefficients),
    "flat reduce": (c.flat_reduce, ab.flat_reduce_coefficients),
    "flat broadcast": (c.flat_broadcast, ab.flat_broadcast_coefficients),
    "ring broadcast": (c.ring_broadcast, ab.ring_broadcast_coefficients),
    "ring broadcast, 5 pieces": (
        lambda n: c.ring_broadcast(n, chunks=5),
        lambda n: ab.ring_broadcast_coefficients(n, 5),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 7, 16, 100])
def test_the_formula_is_the_schedule_counted(name, world_size):
    """Rounds are the alphas; the busiest rank of each round gives the bytes moved and reduced one after another."""
    build, coefficients = PAIRS[name]
    schedule = build(world_size)
    size = world_size * 5 * 12  # divisible by every number of chunks used
    piece = size // schedule.chunks
    moved = sum(np.bincount(round.src).max() * piece for round in schedule.rounds)
    reduced = sum(np.bincount(round.dst).max() * piece for round in schedule.rounds if round.reduce.any())
    assert coefficients(world_size) == pytest.approx((len(schedule.rounds), moved / size, reduced / size), abs=1e-12)


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
    "module", ["costs.alpha_beta", "collectives.schedule", "collectives.ring", "figures.palette", "figures.chart"]
)
def test_examples_in_docstrings(module):
    import doctest
    import importlib

    assert doctest.testmod(importlib.import_module(f"ringzero.{module}")).failed == 0
