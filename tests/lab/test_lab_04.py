"""Lab 04: losses beside torch's own, the slider, and a rank that skips a collective."""

import re

import pytest

pytest.importorskip("nbgrader")

from nbgrader.utils import determine_grade

from tests.live_notebook import text_of

LAB = "04_ddp"


def test_losses_are_those_of_one_process_and_of_torch(reference):
    rows = text_of(reference.cell_with("def losses(")).splitlines()[1:]
    assert len(rows) == 5
    for row in rows:
        _, alone, yours, torchs = map(float, row.split())
        assert alone == pytest.approx(yours, rel=1e-5)
        assert alone == pytest.approx(torchs, rel=1e-5)


def test_slider_shows_the_students_own_step(reference):
    cell = reference.cell_with("def draw_a_step(")
    data = cell.outputs[-1].data
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/plain"].startswith("bucket size 1 KiB: <figure: Timeline.")
    sizes = re.findall(r'"([\d]+ [KM]iB)":', cell.source)
    show = "\n".join(f"print({size}, draw_a_step({size} * 1024)._repr_html_())" for size in (1, 1024, 25 * 1024))
    shown = text_of(reference.run(cell.id, f"{cell.source}\n{show}"))
    counts = [int(count) for count in re.findall(r"(\d+) buckets?; the backward pass and finish\(\) took", shown)]
    assert len(sizes) == 5
    assert counts[0] > counts[1] > counts[2] == 1


def test_what_is_not_written_is_not_drawn(reference):
    sources = {name: reference.cells[name].source for name in ("Overlapped", "Accumulating", "DDP")}
    sources["Overlapped"] = sources["Overlapped"].replace("start_alike(module)", "raise NotImplementedError")
    with reference.changed(sources):
        shown = [text_of(reference.run(reference.cell_with(words).id)) for words in ("def losses(", "def draw_a_step(")]
    assert "Overlapped: not written yet" in shown[0]
    assert "Nothing to draw: it calls what is not written yet" in shown[1]


def test_a_rank_that_skips_a_collective_is_named_and_costs_little(reference):
    """Rank 1 leaves its last bucket out; the others wait for it."""
    source = reference.cells["Overlapped"].source.replace(
        "        if not bucket.missing:",
        "        if not bucket.missing and (dist.get_rank() != 1 or bucket is not self.buckets[-1]):",
    )
    with reference.changed({"Overlapped": source}):
        cell = reference.run("test_Overlapped")
    score, largest = determine_grade(cell)
    assert score < largest
    assert "rank 1" in text_of(cell)
    assert "Bucket" in text_of(cell) or "wait" in text_of(cell)
