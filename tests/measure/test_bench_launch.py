"""The benchmark of ``launch`` runs beside its peers and checks their sums. Its times are reported, never asserted."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from ringzero import processes
from ringzero.cli import main
from ringzero_course.bench import launch as bench


def test_bench_launch_writes_rows_and_names_a_missing_peer(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipyparallel", None)  # as if it were not installed
    file = tmp_path / "rows.json"
    small = ["--world-sizes", "2,3", "--calls", "3", "--repeats", "1", "--peers-at", "2", "--json", str(file)]
    done = CliRunner().invoke(main, ["bench", "launch", *small])
    assert done.exit_code == 0, done.output
    assert (
        'not measured: ipyparallel, warm engines: ipyparallel is not installed: pip install "ringzero-course[bench]"'
        in done.output
    )
    rows = json.loads(file.read_text())
    for row in rows:
        assert set(row) == {"name", "metric", "ours", "peer", "peer_name", "ratio", "unit"}
        assert row["unit"] == "s"
        assert row["ours"] > 0
    alone = [(row["name"], row["metric"]) for row in rows if row["peer"] is None]
    names, metrics = ("launch, 2 ranks", "launch, 3 ranks"), ("median", "p99", "slowest of 3")
    assert alone == [(name, metric) for name in names for metric in metrics]
    compared = [row for row in rows if row["peer"] is not None]
    assert [row["peer_name"] for row in compared] == [name for name in bench.PEERS if "ipyparallel" not in name]
    for row in compared:
        assert (row["name"], row["metric"]) == ("launch, 2 ranks", "median")
        assert row["ratio"] == pytest.approx(row["peer"] / row["ours"])


ENGINES = """
import os, signal
from ringzero_course.bench import launch

if __name__ == "__main__":
    with launch._caller("ipyparallel, warm engines", 2) as caller:
        assert caller(2) > 0
        print(*{each.environ()[launch.MARK] for each in launch.processes.marked(launch.MARK)}, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_engines_answer_and_end_with_a_benchmark_that_is_killed(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(ENGINES)
    done = subprocess.run([sys.executable, script], stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    marks = done.stdout.split()
    assert marks
    deadline = time.monotonic() + 300
    while any(list(processes.marked(bench.MARK, mark)) for mark in marks) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [mark for mark in marks if list(processes.marked(bench.MARK, mark)) or os.path.exists(mark)] == []


def test_a_contender_that_returns_a_wrong_sum_is_no_result():
    def call_nothing(world_size, directory):
        return [[0.0] * 4] * world_size

    with pytest.raises(RuntimeError, match="call_nothing on 3 ranks returned"):
        bench.timed(call_nothing, 3)


@pytest.mark.parametrize(
    ("calls", "repeats", "peer_calls"),
    [(200, 5, 5), (7, 5, 5), (3, 3, 3), (2, 1, 1)],
)
def test_peers_take_their_turns_among_our_calls(calls, repeats, peer_calls):
    plan = bench._plan([bench.OURS, "a", "b"], [2, 4], calls, repeats, peers_at=4)
    assert plan.count((bench.OURS, 2)) == plan.count((bench.OURS, 4)) == calls
    assert plan.count(("a", 4)) == plan.count(("b", 4)) == peer_calls
    assert ("a", 2) not in plan
    turns = [index for index, turn in enumerate(plan) if turn == ("a", 4)]
    assert all(later - earlier >= calls // repeats for earlier, later in zip(turns, turns[1:], strict=False))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--world-sizes", "two"], "'two' is not a list of world sizes"),
        (["--calls", "1"], "1 is not in the range x>=2"),
        (["--peers-at", "1"], "1 is not in the range x>=2"),
    ],
)
def test_bad_options_are_named(options, message):
    done = CliRunner().invoke(main, ["bench", "launch", *options])
    assert done.exit_code != 0
    assert message in done.output
