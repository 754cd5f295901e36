"""The benchmark of grading runs all contenders and checks their scores. Its times are reported, never asserted."""

import json

import pytest
from click.testing import CliRunner

from ringzero.cli import main
from ringzero_course.bench import grading as bench
from ringzero_course.boxes import sandbox
from ringzero_course.grading import build_labs
from tests.grading.test_grading import LAB, Handed, source

pytestmark = pytest.mark.skipif(sandbox.missing_ability() is not None, reason="needs a sandbox; see ringzero doctor")


def without_noise():
    """The tiny lab, but a line on stderr, which stock nbgrader takes for an error."""
    notebook = source()
    for cell in notebook.cells:
        cell.source = cell.source.replace('print("noise of a library", file=sys.stderr)\n', "")
    return notebook


def test_bench_grading_writes_a_row_for_each_peer(tmp_path, monkeypatch):
    monkeypatch.setattr(build_labs, "source_notebook", lambda lab: without_noise())
    handed = Handed(without_noise())
    monkeypatch.setattr("ringzero_course.authoring.submission.submission", lambda lab: handed.filled())
    file = tmp_path / "rows.json"
    words = ["--lab", LAB, "--submissions", "1", "--repeats", "1", "--json", str(file)]
    done = CliRunner().invoke(main, ["bench", "grading", *words])
    assert done.exit_code == 0, done.output
    rows = json.loads(file.read_text())
    assert [(row["ratio"], row["peer_name"]) for row in rows] == [
        (pytest.approx(row["peer"] / row["ours"]), name)
        for row, name in zip(rows, (bench.STOCK, bench.TRUSTED), strict=True)
    ]


def test_a_contender_that_does_not_give_full_marks_is_no_contender(monkeypatch):
    monkeypatch.setattr(build_labs, "source_notebook", lambda lab: without_noise())
    handed = Handed(without_noise())
    monkeypatch.setattr(
        "ringzero_course.authoring.submission.submission", lambda lab: handed.filled(double="double = abs")
    )
    with pytest.raises(RuntimeError, match=r"sandbox=True gave \[0.6\]"):
        list(bench.rows(LAB, 1, 1))
