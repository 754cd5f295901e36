"""The benchmark runs, checks its own results and prints nccl-tests' columns. Its times are reported, never asserted."""

import json

import pytest
from click.testing import CliRunner

from ringzero.bench import collectives
from ringzero.cli import main


def test_bench_collectives_writes_rows(tmp_path):
    file = tmp_path / "rows.json"
    options = ["--world-sizes", "2,3", "--sizes", "4K,60000", "--json", str(file)]
    done = CliRunner().invoke(main, ["bench", "collectives", *options])
    assert done.exit_code == 0, done.output
    for column in ("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "Avg bus bandwidth"):
        assert column in done.output
    rows = json.loads(file.read_text())
    assert len(rows) == 2 * 2 * 3
    for row in rows:
        assert set(row) == {"name", "metric", "ours", "peer", "peer_name", "ratio", "unit"}
        assert row["ratio"] == pytest.approx(row["ours"] / row["peer"])
    assert {row["peer_name"] for row in rows} == {"gloo", "gloo, calmed too", "reduce + broadcast"}


def test_wrong_sums_are_counted(monkeypatch):
    """The #wrong column is a measurement: an all-reduce that forgets a rank shows in it."""
    table, _ = collectives.rows((2,), (4096,))
    assert [row["wrong"] for row in table] == [0, 0, 0, 0]

    def measure_broken(size):
        import ringzero

        ringzero.all_reduce = lambda tensor, **options: tensor.mul_(2)
        return collectives.measure(size)

    monkeypatch.setattr(collectives, "_measure", measure_broken)
    table, _ = collectives.rows((2,), (4096,))
    assert {row["implementation"] for row in table if row["wrong"] > 900} == {"ring", "naive"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sizes", "64Q"], "'64Q' is not a list of sizes such as 64K,1M,64M"),
        (["--sizes", "6"], "a size is a multiple of 4 bytes"),
        (["--world-sizes", "two"], "'two' is not a list of world sizes such as 2,4"),
        (["--world-sizes", "0"], "a world size is at least 1"),
        (["--device", "cuda", "--world-sizes", "99"], "needs a GPU for each of 99 ranks and this machine has"),
    ],
)
def test_bad_options_are_named(options, message):
    import re

    done = CliRunner().invoke(main, ["bench", "collectives", *options])
    assert done.exit_code != 0
    assert re.search(message, done.output), done.output
