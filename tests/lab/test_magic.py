"""``%%ranks``: a cell's body on N ranks, with the notebook's own names, shown by rank, errors in the cell's lines."""

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = [
    "%load_ext ringzero_course.lab.magic\nimport torch, torch.distributed as dist",
    "scale = 10\ndef scaled(x):\n    return x * scale",
    "%%ranks 3\nx = torch.ones(2) * dist.get_rank()\ndist.all_reduce(x)\nprint('hello', dist.get_rank())\nscaled(x)",
    "%%ranks 2\nif dist.get_rank() == 1:\n    raise ValueError('on purpose')\ndist.barrier()",
    "%%ranks 2 --timeout 900\nif dist.get_rank() == 0:\n    dist.all_reduce(torch.ones(1))",
    "%%ranks 2\nfor r in range(dist.get_world_size()):\n    if r == dist.get_rank():\n        print([r] * 2)",
    "'x' in globals()",
    "%%ranks two\nscale",
    "%%ranks 2\nif:",
    "%%ranks 2\nscale",
    "%%ranks 2 --timeout 0.5\n__import__('time').sleep(3000)",
]


@pytest.fixture(scope="module")
def outputs():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    NotebookClient(notebook, timeout=1800, iopub_timeout=600, kernel_name="python3", allow_errors=True).execute()

    def text(cell):
        return "\n".join(
            output.get("text") or output.get("evalue") or output.get("data", {}).get("text/plain", "")
            for output in cell.outputs
        )

    return [text(cell) for cell in notebook.cells]


def test_output_and_the_last_value_come_back_by_rank(outputs):
    for rank in range(3):
        assert f"rank {rank} │ hello {rank}\nrank {rank} → tensor([30., 30.])" in outputs[2]
    assert outputs[9] == "rank 0 → 10\nrank 1 → 10"


def test_an_error_is_shown_in_the_cells_own_lines(outputs):
    assert outputs[3].startswith("rank 1 failed:\nTraceback")
    assert "File \"cell [4]\", line 3, in <module>\n    raise ValueError('on purpose')" in outputs[3]
    assert "ast.py" not in outputs[3]
    assert "magic.py" not in outputs[3]


def test_a_hang_is_explained_in_the_cells_own_lines(outputs):
    assert "rank 1 never entered all_reduce #1; rank 0 waits there, cell 5 line 3; rank 1 had returned" in outputs[4]
    assert outputs[10].startswith("2 ranks were not done after 0.5 s: ")


def test_statements_without_a_value_and_names_of_comprehensions(outputs):
    assert outputs[5] == "rank 0 │ [0, 0]\nrank 1 │ [1, 1]"


def test_what_the_body_assigns_stays_on_the_ranks(outputs):
    assert outputs[6] == "False"


def test_bad_input_is_named(outputs):
    assert "invalid int value: 'two'; write for example: %%ranks 4 --timeout 30" in outputs[7]
    assert "%%ranks, line 2 of the cell: invalid syntax" in outputs[8]
