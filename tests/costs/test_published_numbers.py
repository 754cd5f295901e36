"""Numbers that papers, vendors and tools have printed, against ringzero's. See tests/published/README.md."""

import json
import math
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest

from tests.published.quantities import evaluate

FOLDER = Path(__file__).parents[1] / "published"
COMMITTED = (FOLDER / "published.json", FOLDER / "published2.json")


def load(path):
    rows = json.loads(Path(path).read_text())
    for row in rows:
        missing = {"id", "quantity", "inputs", "expected", "tolerance", "tolerance_kind", "rounding"} - row.keys()
        if missing:
            raise ValueError(f"{path}: the row {row.get('id', row)} lacks {', '.join(sorted(missing))}")
    return rows


def pytest_generate_tests(metafunc):
    if "row" not in metafunc.fixturenames:
        return
    given = metafunc.config.getoption("--published")
    rows = [row for path in ([given] if given else COMMITTED) for row in load(path)]
    metafunc.parametrize("row", rows, ids=[f"{row['quantity']}-{row['id']}" for row in rows])


def agrees(value, expected, row):
    """Whether ``value`` is what the source printed: shortened as the source shortens, or within the tolerance."""
    if row["rounding"] is not None:
        # Binary noise must not decide a tie: 41.25 GB computed as 41.2499999 still rounds to 41.3.
        places = Decimal(repr(expected)).as_tuple().exponent
        step = Decimal(1).scaleb(max(places, -12))
        mode = ROUND_HALF_UP if row["rounding"] == "round" else ROUND_DOWN
        if Decimal(f"{value:.12g}").quantize(step, mode) == Decimal(repr(expected)).quantize(step):
            return True
    slack = row["tolerance"] * (abs(expected) if row["tolerance_kind"] == "rel" else 1.0)
    return math.isclose(value, expected, rel_tol=1e-12, abs_tol=slack) if slack == 0 else abs(value - expected) <= slack


def test_published_number(row):
    value, expected = evaluate(row["quantity"], row["inputs"]), row["expected"]
    if isinstance(expected, list):
        assert len(value) == len(expected)
        pairs = zip(value, expected, strict=True)
    else:
        pairs = [(value, expected)]
    for got, printed in pairs:
        assert agrees(got, printed, row), f"{row['id']}: ringzero gives {got} {row['unit']}, {row['source']} {printed}"


def test_an_unknown_quantity_fails():
    with pytest.raises(KeyError, match="unknown quantity 'warp_speed'"):
        evaluate("warp_speed", {})


def test_a_wrong_value_is_noticed():
    row = {"tolerance": 0.5, "tolerance_kind": "abs", "rounding": "round"}
    assert agrees(41.25, 41.3, row | {"tolerance": 0.05})
    assert not agrees(41.36, 41.3, row | {"tolerance": 0.05})
    assert not agrees(1.1, 1.0, row | {"tolerance": 0.0, "rounding": None})
