"""A lab's notebook in a live kernel: run it, run a cell again with another text, read points and what is shown."""

import contextlib
import copy

from nbclient import NotebookClient
from nbgrader.utils import determine_grade, is_grade


class Kernel:
    """A notebook in a live kernel, whose cells can be run again with other contents."""

    def __init__(self, notebook):
        self.notebook = copy.deepcopy(notebook)
        self.client = NotebookClient(self.notebook, allow_errors=True, timeout=120, kernel_name="python3")
        self.places = {cell.id: index for index, cell in enumerate(self.notebook.cells)}
        self.texts = {cell.id: cell.source for cell in self.notebook.cells}  # nbclient keeps the text last run

    def run(self, cell_id, source=None):
        """The cell after a run with ``source``, or with its own text."""
        index = self.places[cell_id]
        cell = copy.deepcopy(self.notebook.cells[index])
        cell.source = self.texts[cell_id] if source is None else source
        self.client.execute_cell(cell, index)
        return cell

    def run_all(self):
        return {cell.id: self.run(cell.id) for cell in self.notebook.cells if cell.cell_type == "code"}


@contextlib.contextmanager
def kernel_of(notebook):
    kernel = Kernel(notebook)
    with kernel.client.setup_kernel():
        yield kernel


def grades(cells):
    return {cell.id: determine_grade(cell) for cell in cells if is_grade(cell) and cell.cell_type == "code"}


def errors(cell):
    return [output for output in cell.outputs if output.output_type == "error"]


def text_of(cell):
    """Everything the cell shows, as text."""
    shown = []
    for output in cell.outputs:
        shown.append(output.get("text", "") + output.get("evalue", "") + output.get("data", {}).get("text/plain", ""))
    return "\n".join(shown)
