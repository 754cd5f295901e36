"""A lab's notebook in a live kernel: run it, run a cell again with another text, read points and what is shown."""

import contextlib
import copy
import tempfile
import uuid

from nbclient import NotebookClient
from nbgrader.utils import determine_grade, is_grade, is_solution

# Far above any load: on a busy machine nbclient's own limits lose the output of a cell 4 s after its end.
CEILINGS = {"timeout": 3600, "iopub_timeout": 600, "startup_timeout": 600}


class Kernel:
    """A notebook in a live kernel, whose cells can be run again with other contents.

    ``cells`` are the code cells by name, with the outputs of ``run_all``.
    """

    def __init__(self, notebook):
        self.notebook = copy.deepcopy(notebook)
        self.client = NotebookClient(self.notebook, allow_errors=True, kernel_name="python3", **CEILINGS)
        manager = self.client.create_kernel_manager()
        manager.transport = "ipc"  # no ports: two kernels that start may take the same
        manager.connection_file = f"{tempfile.gettempdir()}/rz-kernel-{uuid.uuid4().hex[:12]}.json"  # sockets beside it
        self.places = {cell.id: index for index, cell in enumerate(self.notebook.cells)}
        self.texts = {cell.id: cell.source for cell in self.notebook.cells}  # nbclient keeps the text last run
        self.cells = {}

    def run(self, cell_id, source=None):
        """The cell after a run with ``source``, or with its own text."""
        index = self.places[cell_id]
        cell = copy.deepcopy(self.notebook.cells[index])
        cell.source = self.texts[cell_id] if source is None else source
        self.client.execute_cell(cell, index)
        return cell

    def run_all(self):
        self.cells = {cell.id: self.run(cell.id) for cell in self.notebook.cells if cell.cell_type == "code"}
        return self.cells

    @property
    def tests(self):
        """The names of the test cells, in the notebook's order."""
        return [cell.id for cell in self.notebook.cells if is_test(cell)]

    def cell_with(self, words):
        """The one code cell that has these words in its text."""
        (cell,) = (cell for cell in self.cells.values() if words in cell.source)
        return cell

    @contextlib.contextmanager
    def changed(self, replacements, fails=""):
        """Run these cells with other texts, ``{cell_id: source}``; at the end, run them with their own again.

        With them, the student's cells behind the first of them: classes there may be built on what was changed.
        ``fails`` names the error with which such a cell ends now, if one does: "SyntaxError".
        """
        cells = sorted({*replacements, *self._solutions_behind(replacements)}, key=self.places.get)
        try:
            for cell_id in cells:
                cell = self.run(cell_id, replacements.get(cell_id))
                assert {error.ename for error in errors(cell)} <= {fails}, text_of(cell)
            yield self
        finally:
            for cell_id in cells:
                self.run(cell_id)

    def _solutions_behind(self, replacements):
        """The code cells for solutions behind the first of these cells that is one itself."""
        places = [self.places[cell_id] for cell_id in replacements if self._is_solution(cell_id)]
        return [
            cell_id
            for cell_id, place in self.places.items()
            if self._is_solution(cell_id) and places and place > min(places)
        ]

    def _is_solution(self, cell_id):
        cell = self.notebook.cells[self.places[cell_id]]
        return cell.cell_type == "code" and is_solution(cell)

    def with_ranks(self, world_size, device="cpu"):
        """As ``changed``, of the parameters: another number of ranks, and their device."""
        (parameters,) = (cell for cell in self.notebook.cells if "parameters" in cell.metadata.get("tags", []))
        return self.changed({parameters.id: f'WORLD_SIZE = {world_size}\nDEVICE = "{device}"'})


@contextlib.contextmanager
def kernel_of(notebook):
    kernel = Kernel(notebook)
    with kernel.client.setup_kernel():
        yield kernel


def is_test(cell):
    return cell.cell_type == "code" and is_grade(cell) and not is_solution(cell)


def grades(cells):
    return {cell.id: determine_grade(cell) for cell in cells if is_test(cell)}


def errors(cell):
    return [output for output in cell.outputs if output.output_type == "error"]


def text_of(cell):
    """Everything the cell shows, as text."""
    shown = []
    for output in cell.outputs:
        shown.append(output.get("text", "") + output.get("evalue", "") + output.get("data", {}).get("text/plain", ""))
    return "\n".join(shown)
