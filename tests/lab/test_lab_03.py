"""Lab 03: formulas beside counts, measurements beside predictions."""

import re

from tests.live_notebook import text_of

LAB = "03_cost_models"


def test_formulas_agree_with_the_counted_schedules(reference):
    table = text_of(reference.cell_with("FORMULAS = {"))
    assert table.count("the same") == 36
    assert "COUNTED" not in table


def test_a_wrong_formula_is_seen_beside_the_count(reference):
    table = reference.cell_with("FORMULAS = {")
    with reference.changed({"ring_cost": "def ring_cost(n):\n    return n, 2 * (n - 1) / n"}):
        shown = text_of(reference.run(table.id))
    reference.run(table.id)
    assert "COUNTED 6 rounds, 1.5 S" in shown


def test_fractions_are_shown_beside_the_count(reference):
    table = reference.cell_with("FORMULAS = {")
    exact = "from fractions import Fraction\ndef ring_cost(n):\n    return Fraction(2 * n - 2), Fraction(2 * n - 2, n)"
    with reference.changed({"ring_cost": exact}):
        shown = reference.run(table.id)
    assert text_of(shown).count("the same") == 36


def test_a_logarithm_that_is_only_rounded_is_seen_beside_the_count(reference):
    """It is right on 2, 3, 4, 6, 7, 8 and 16 ranks."""
    table = reference.cell_with("FORMULAS = {")
    rounded = "def tree_cost(n):\n    from math import log2\n    return 2 * round(log2(n)), 2.0 * round(log2(n))"
    with reference.changed({"tree_cost": rounded}):
        shown = text_of(reference.run(table.id))
    reference.run(table.id)
    assert shown.count("COUNTED") == 2  # on 5 and on 9


def test_measured_beside_predicted(reference):
    shown = text_of(reference.cell_with("def measure("))
    assert len(re.findall(r"^ +\d+ +\d+ +\d+   (?:ring|doubling) is faster$", shown, re.MULTILINE)) == 6
    assert len(re.findall(r"alpha -?[\d.]+ µs, beta -?[\d.]+ ns a byte, so they would cross at", shown)) == 2
    assert "the two fitted lines cross at" in shown


def test_what_the_plans_need(reference):
    shown = text_of(reference.cell_with('if written("state_bytes", "least_ranks")'))
    assert (
        "7.5B   fits from [1, 1, 1, 1] ranks on, stages 0 to 3; on 64 ranks GB a rank: 120, 31.41, 16.64, 1.875"
        in shown
    )
    assert "GPT-3  fits from [None, None, None, 20] ranks on" in shown
