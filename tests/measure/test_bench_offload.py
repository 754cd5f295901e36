"""The benchmarks of offload and of ZeRO++ run, and count what the formulas say. Their times are never asserted."""

import json

import pytest
from click.testing import CliRunner

from ringzero.cli import main
from ringzero.measure import disk
from ringzero.ranks.cluster import missing_ability
from ringzero_course.bench import cluster, muon, offload

ROW = {"name", "metric", "ours", "peer", "peer_name", "ratio", "unit"}
emulated = pytest.mark.skipif(missing_ability() is not None, reason=f"no emulated cluster here: {missing_ability()}")


def test_offload(tmp_path):
    made = list(offload.rows(links=(8e9,), windows=(2,), steps=1, folder=tmp_path))
    assert all(set(row) == ROW for row in made)
    assert [row["metric"] for row in made] == ["AdamW on the CPU"] * 3 + ["update", "pass", "read and written"]
    assert all(row["ours"] > 0 and row["peer"] > 0 for row in made)
    assert not list(tmp_path.iterdir())  # its files are removed


@emulated
def test_zeropp(tmp_path):
    file = tmp_path / "rows.json"
    done = CliRunner().invoke(main, ["bench", "zeropp", "--rates", "1gbit", "--steps", "1", "--json", str(file)])
    assert done.exit_code == 0, done.output
    rows = json.loads(file.read_text())
    assert all(set(row) == ROW for row in rows)
    counted = {row["name"]: row for row in rows if row["metric"] == "bytes across nodes"}
    assert all(row["ours"] == pytest.approx(row["peer"]) for row in counted.values())
    assert counted["ZeRO++"]["ours"] < 0.26 * counted["ZeRO-3"]["ours"]


@emulated
def test_muon():
    made = list(muon.rows(rates=("1gbit",), steps=1))
    assert all(set(row) == ROW for row in made)
    assert [row["name"] for row in made] == ["owner, 1gbit", "gather, 1gbit", "all_to_all, 1gbit"]


@emulated
def test_cluster(monkeypatch):
    monkeypatch.setattr(cluster, "STEPS", 1)
    bandwidth, step = cluster.rows(rates=("1gbit",))
    assert (bandwidth["peer"], bandwidth["unit"]) == (1000, "Mbit/s")
    assert 0 < bandwidth["ratio"] < 1.5
    assert (step["name"], step["peer_name"]) == ("overlapped step at 1gbit", "naive")


def test_a_disk_is_measured_and_left_as_it_was(tmp_path):
    found = disk.rates(tmp_path, 8 * 2**20, repeat=1)
    assert set(found) == {"read", "write", "both"}
    assert min(found.values()) > 0
    assert not list(tmp_path.iterdir())
