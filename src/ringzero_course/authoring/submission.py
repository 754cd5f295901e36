"""Notebooks as a student hands them in, made from the reference: wrong solutions, sample classes, hostile ones.

The wrong solutions of a lab are one Python file, ``tests/mutants/LAB.py``. Each begins with its name:

    # ==== one_step_less
    \"\"\"What is wrong with it.\"\"\"
    # caught by: test_ring_all_reduce
    # says: the tensor is wrong in every element
    # %% ring_all_reduce
    def ring_all_reduce(tensor): ...

Each section replaces the solution cell of that ``grade_id``; all other cells are the reference's. A section may also
say only what it changes in the reference's cell:

    # %% ring_all_reduce: changed
    #       for step in range(n - 1):
    # -         send(chunks[rank - step])
    # +         send(chunks[rank])

A third line, ``# fails: SyntaxError``, stands where the cell itself ends with an error.

Lines with a minus go, lines with a plus come, the others show the place, which must be the only one of its kind; a line
``# @@`` begins another place. The words after "says" must be in the first reason of the check's table; that line may be
left out.
"""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ringzero_course.grading import build_labs


@dataclass(frozen=True)
class WrongSolution:
    """Replacements: ``reason`` is what is wrong, ``caught_by`` the test cell that must catch it, ``says`` the
    words that its first reason must contain (or none), ``fails`` the error with which its cell ends, if it does, and
    ``replacements`` is ``{grade_id: source}``."""

    name: str
    reason: str
    caught_by: str
    says: str
    replacements: dict
    fails: str = ""


def wrong_solutions(lab: str, path: Path | None = None) -> dict[str, WrongSolution]:
    """``{name: wrong solution}`` of the ``lab``, from the file ``path`` or its own.

    Raises ValueError saying what one of them lacks, or that two have one name.
    """
    path = path or build_labs.repository() / "tests" / "mutants" / f"{lab}.py"
    found: dict[str, WrongSolution] = {}
    for text in re.split(r"^# ==== +(?=\S)", path.read_text(), flags=re.MULTILINE)[1:]:
        name, _, text = text.partition("\n")
        where = f"{name.strip()} in {path}"
        if name.strip() in found:
            raise ValueError(f"{where}: there are two of this name")
        found[name.strip()] = _wrong_solution(name.strip(), text, lab, where)
    return found


def _wrong_solution(name, text, lab, where):
    head = _sections(text)[0]
    caught_by = re.findall(r"^# caught by: *(\S+) *$", head, flags=re.MULTILINE)
    reason = ast.get_docstring(ast.parse(head))
    replacements = _replacements(text, lab, where)
    if not reason or len(caught_by) != 1 or not replacements:
        raise ValueError(
            f"{where} needs a docstring, one line '# caught by: GRADE_ID' and at least one section '# %% GRADE_ID'"
        )
    says = re.findall(r"^# says: *(\S.*?) *$", head, flags=re.MULTILINE)
    fails = re.findall(r"^# fails: *(\w+) *$", head, flags=re.MULTILINE)
    return WrongSolution(name, reason, caught_by[0], " ".join(says), replacements, "".join(fails))


def read_replacements(path, lab=None):
    """``{grade_id: source}`` of the sections in a file; there may be none.

    Sections that change the reference need the ``lab``. Raises ValueError where a change does not fit it.
    """
    return _replacements(Path(path).read_text(), lab, path)


def _replacements(text, lab, where):
    replacements = {}
    for section in _sections(text)[1:]:
        name, _, source = section.partition("\n")
        grade_id, _, how = (part.strip() for part in name.partition(":"))
        if grade_id in replacements:
            raise ValueError(f"{where} has two sections {grade_id}")
        if how == "changed":
            try:
                source = apply_changes(reference_cells(lab)[grade_id], source)
            except (KeyError, ValueError) as error:
                raise ValueError(f"{where}: {grade_id} of {lab} cannot be changed: {error}") from None
        replacements[grade_id] = source.strip("\n")
    return replacements


def apply_changes(source, changes):
    """``source`` with each place of ``changes`` (see the module's docstring) in its new form."""
    for place in changes.strip("\n").split("\n# @@\n"):
        lines = [(line[2:3], line[4:]) for line in place.split("\n")]
        old, new = ("\n".join(text for sign, text in lines if sign != gone) for gone in "+-")
        if f"\n{source}\n".count(f"\n{old}\n") != 1:
            raise ValueError(f"these lines are not there exactly once:\n{old}")
        source = f"\n{source}\n".replace(f"\n{old}\n", f"\n{new}\n" if new else "\n").strip("\n")
    return source


@cache
def reference_cells(lab):
    """``{grade_id: source}`` of the reference's solution cells, without the lines that mark the solution."""
    return {
        cell.metadata.nbgrader.grade_id: "\n".join(
            line
            for line in cell.source.split("\n")
            if "### BEGIN SOLUTION" not in line and "### END SOLUTION" not in line
        )
        for cell in build_labs.solution_cells(build_labs.source_notebook(lab))
    }


def _sections(text):
    return re.split(r"^# %% +(?=\S)", text, flags=re.MULTILINE)


def submission(lab, replacements=None, filled=True):
    """The lab as released, with solution cells filled in: from ``replacements``, else from the reference.

    With ``filled=False`` cells without a replacement stay as released. Raises ValueError for a ``grade_id`` that is not
    a solution cell of the lab.
    """
    replacements = dict(replacements or {})
    notebook = build_labs.release_notebook(lab)
    reference = reference_cells(lab)
    unknown = sorted(replacements.keys() - reference.keys())
    if unknown:
        raise ValueError(f"{lab} has no solution cell {', '.join(unknown)}; it has {', '.join(reference)}")
    for cell in build_labs.solution_cells(notebook):
        grade_id = cell.metadata.nbgrader.grade_id
        if grade_id in replacements:
            cell.source = replacements[grade_id]
        elif filled:
            cell.source = reference[grade_id]
    return notebook
