"""The instructor's cells in a student's notebook, whole again whatever was done to them."""

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor

from ringzero_course.grading.read_submission import id_of


class RestoreCells(NbGraderPreprocessor):
    """Give the notebook the instructor's cells: all of a locked one, the metadata of a solution.

    A cell that appears twice (copied, or split) counts where it is last; one that is missing is put back.
    """

    def preprocess(self, nb, resources):
        names = resources["nbgrader"]["notebook"], resources["nbgrader"]["assignment"]
        with Gradebook(resources["nbgrader"]["db_url"]) as gradebook:
            sources = {id_of(cell): cell for cell in sources_of(gradebook.find_notebook(*names))}
        notes = resources.setdefault("ringzero_notes", [])
        cells, seen = [], set()
        for cell in reversed(nb.cells):
            grade_id = id_of(cell)
            cell.metadata.pop("nbgrader", None)
            if grade_id in seen:
                notes.append(f"cell {grade_id} is there more than once: the last one counts")
            elif grade_id in sources:
                seen.add(grade_id)
                cell = _restored(cell, sources[grade_id])
            cells.insert(0, cell)
        self._put_back(cells, sources, notes)
        nb.cells = cells
        nb.metadata = nbformat.from_dict({"language_info": {"name": "python"}})
        return nb, resources

    @staticmethod
    def _put_back(cells, sources, notes):
        previous = -1
        for grade_id, source in sources.items():
            places = [i for i, cell in enumerate(cells) if id_of(cell) == grade_id]
            if places:
                previous = places[0]
            else:
                previous += 1
                cells.insert(previous, _restored(None, source))
                notes.append(f"cell {grade_id} was missing: it was put back as it was handed out")


def sources_of(notebook):
    """The instructor's cells in the gradebook, in their order, as notebook cells."""
    grades = {cell.name: cell.max_score for cell in notebook.grade_cells}
    solutions = {cell.name for cell in notebook.solution_cells}
    tasks = {cell.name: cell.max_score for cell in notebook.task_cells}
    for cell in notebook.source_cells:
        metadata = {
            "grade": cell.name in grades,
            "grade_id": cell.name,
            "locked": cell.locked,
            "solution": cell.name in solutions,
            "task": cell.name in tasks,
            "cell_type": cell.cell_type,
            "checksum": cell.checksum,
            "schema_version": 3,
        }
        if cell.name in grades or cell.name in tasks:
            metadata["points"] = {**grades, **tasks}[cell.name]
        new = new_code_cell if cell.cell_type == "code" else new_markdown_cell
        yield new(cell.source or "", metadata={"nbgrader": metadata})


def _restored(cell, source):
    """``source``, with the student's text where it is the student's to write."""
    if cell is not None:
        source.id = cell.get("id", source.id)
        if not source.metadata.nbgrader.locked:
            source.source = cell.source
    return source
