"""Lab 02: its figures, whatever can go wrong in a call, and a notebook without parameters."""

import pytest

pytest.importorskip("nbgrader")

from nbgrader.utils import determine_grade

from ringzero_course.grading import build_labs
from tests.live_notebook import errors, kernel_of, text_of

LAB = "02_ring_allreduce"


def test_figures_and_explorer_show(reference):
    drawn = [cell for cell in reference.cells.values() if cell.source.startswith(("draw(", "explore("))]
    assert len(drawn) == 2
    figure, widgets = drawn
    assert "<svg" in figure.outputs[0].data["text/html"]
    assert "10 rounds" in figure.outputs[0].data["text/html"] or "N" in text_of(figure)
    data = widgets.outputs[0].data
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "ring_all_reduce, 4 ranks: 6 rounds" in data["text/plain"]


WRONG_CALLS = {
    "raises on one rank": (
        "    if dist.get_rank() == 2:\n        raise KeyError('lost')\n    dist.barrier()",
        ["rank 2 raised KeyError: 'lost'", "line 3: raise KeyError('lost')"],
    ),
    "hangs": (
        "    if dist.get_rank() != 1:\n        dist.recv(tensor, src=1)",
        ["no end after", "rank 0 waits to receive from rank 1, cell", "line 3", "rank 1 had returned"],
    ),
    "ends the process": ("    import os\n    os._exit(0)", ["ended with exit status 0 before its function returned"]),
    "segmentation fault": ("    import os, signal\n    os.kill(os.getpid(), signal.SIGSEGV)", ["SIGSEGV"]),
    "sys.exit": ("    import sys\n    sys.exit(0)", ["raised SystemExit"]),
    "writes past the end": (
        "    tensor.as_strided((tensor.numel() + 1,), (1,)).fill_(1)\n    ring_reduce_scatter(tensor)",
        ["wrong in"],
    ),
    "a size that does not match": (
        "    n, r = dist.get_world_size(), dist.get_rank()\n"
        "    if n > 1 and r == 0:\n        dist.send(tensor, 1)\n"
        "    elif n > 1 and r == 1:\n        dist.recv(tensor[:2].clone(), 0)",
        ["rank 1 got a message of", "bytes and expected one of 8", "line 6 in ring_all_gather"],
    ),
    "not a function": (None, ["ring_all_gather is 3, not a function"]),
    "prints": ("    print('I am', dist.get_rank(), 'of the ranks')", ["rank 1 │ I am 1 of the ranks"]),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_whatever_goes_wrong_is_a_row_of_the_table(reference, name):
    body, words = WRONG_CALLS[name]
    source = "ring_all_gather = 3" if body is None else f"def ring_all_gather(tensor):\n{body}\n"
    with reference.changed({"ring_all_gather": source}):
        cell = reference.run("test_ring_all_gather")
    assert not errors(cell)
    assert not [output for output in cell.outputs if output.get("name") == "stderr"]
    score, largest = determine_grade(cell)
    assert score < largest
    for word in words:
        assert word in text_of(cell)


def test_what_is_not_written_is_not_drawn(reference):
    with reference.changed({"ring_all_reduce": "def ring_all_reduce(tensor):\n    raise NotImplementedError"}):
        shown = reference.run(reference.cell_with("explore(").id)
    assert "is not written yet" in text_of(shown)


def test_parameters_cell_removed():
    notebook = build_labs.release_notebook(LAB)
    notebook.cells = [cell for cell in notebook.cells if "parameters" not in cell.metadata.get("tags", [])]
    with kernel_of(notebook) as kernel:
        first = next(cell for cell in notebook.cells if cell.cell_type == "code")
        cell = kernel.run(first.id)
    (error,) = errors(cell)
    assert error.evalue.startswith("WORLD_SIZE and DEVICE not defined: the lab's parameters cell is missing")
    assert len(error.traceback) == 1
