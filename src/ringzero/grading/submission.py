"""Notebooks as a student hands them in, made from the reference: wrong solutions, sample classes, hostile ones.

A wrong solution is a Python file:

    \"\"\"What is wrong with it.\"\"\"
    # caught by: test_ring_all_reduce
    # %% ring_all_reduce
    def ring_all_reduce(tensor): ...

Each section replaces the solution cell of that ``grade_id``; all other cells are the reference's.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from ringzero.grading import build_labs


@dataclass(frozen=True)
class WrongSolution:
    """A file of replacements: what is wrong, the test cell that must catch it, ``{grade_id: source}``."""

    name: str
    reason: str
    caught_by: str
    replacements: dict


def read_wrong_solution(path):
    """Parse such a file. Raises ValueError saying what it lacks."""
    path = Path(path)
    head = _sections(path)[0]
    caught_by = re.findall(r"^# caught by: *(\S+) *$", head, flags=re.MULTILINE)
    reason = ast.get_docstring(ast.parse(head))
    replacements = read_replacements(path)
    if not reason or len(caught_by) != 1 or not replacements:
        raise ValueError(
            f"{path} needs a docstring, one line '# caught by: GRADE_ID' and at least one section '# %% GRADE_ID'"
        )
    return WrongSolution(path.stem, reason, caught_by[0], replacements)


def read_replacements(path):
    """``{grade_id: source}`` of such a file; only the sections matter, and there may be none."""
    path, replacements = Path(path), {}
    for section in _sections(path)[1:]:
        grade_id, _, source = section.partition("\n")
        if grade_id.strip() in replacements:
            raise ValueError(f"{path} has two sections {grade_id.strip()}")
        replacements[grade_id.strip()] = source.strip("\n")
    return replacements


def _sections(path):
    return re.split(r"^# %% +(?=\S)", path.read_text(), flags=re.MULTILINE)


def submission(lab, replacements=None, filled=True):
    """The lab as released, with solution cells filled in: from ``replacements``, else from the reference.

    With ``filled=False`` cells without a replacement stay as released. Raises ValueError for a ``grade_id`` that is not
    a solution cell of the lab.
    """
    replacements = dict(replacements or {})
    notebook = build_labs.release_notebook(lab)
    reference = {
        cell.metadata.nbgrader.grade_id: cell.source for cell in solution_cells(build_labs.source_notebook(lab))
    }
    unknown = sorted(replacements.keys() - reference.keys())
    if unknown:
        raise ValueError(f"{lab} has no solution cell {', '.join(unknown)}; it has {', '.join(reference)}")
    for cell in solution_cells(notebook):
        grade_id = cell.metadata.nbgrader.grade_id
        if grade_id in replacements:
            cell.source = replacements[grade_id]
        elif filled:
            lines = reference[grade_id].split("\n")
            cell.source = "\n".join(x for x in lines if "### BEGIN SOLUTION" not in x and "### END SOLUTION" not in x)
    return notebook


def solution_cells(notebook):
    """The cells a student fills in, written answers among them."""
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("solution")]
