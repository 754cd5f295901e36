"""A class's solutions as plain files, for programs that compare them: Dolos and JPlag.

Only what students write counts: the solution cells. What was handed out lies apart, so that both programs leave it out.
"""

import csv
import json
from pathlib import Path

from ringzero_course.grading import build_labs

TEMPLATE = "handed_out"


def export(lab: str, submitted: Path, into: Path) -> tuple[list[str], list[str]]:
    """Write ``into/solutions/STUDENT/LAB.py`` for each notebook in ``submitted/STUDENT/lab``, what was handed out, and
    Dolos's ``info.csv``. Returns the students' names and a sentence for each notebook that was left out.
    """
    ids = [cell.metadata.nbgrader.grade_id for cell in _handed_out(lab)]
    handed_out = _text({cell.metadata.nbgrader.grade_id: cell.source for cell in _handed_out(lab)}, ids)
    names, left_out = [], []
    for folder in sorted(submitted.glob(f"*/{lab}")):
        student = folder.parent.name
        try:
            text = _text(_cells(folder / f"{lab}.ipynb"), ids)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            left_out.append(f"{student}: no notebook that can be read ({type(error).__name__})")
            continue
        if text == handed_out:
            left_out.append(f"{student}: as it was handed out")
            continue
        _write(into / "solutions" / student / f"{lab}.py", text)
        names.append(student)
    _write(into / TEMPLATE / f"{lab}.py", handed_out)
    with open(into / "info.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["filename", "label"])
        rows.writerows([f"solutions/{name}/{lab}.py", name] for name in names)
    return names, left_out


def _handed_out(lab):
    return build_labs.solution_cells(build_labs.release_notebook(lab))


def _cells(path):
    """``{grade_id: text}``, the last of several."""
    cells = json.loads(path.read_text())["cells"]
    named = [(cell["metadata"].get("nbgrader", {}).get("grade_id"), cell["source"]) for cell in cells]
    return {name: text if isinstance(text, str) else "".join(text) for name, text in named if name}


def _text(cells, ids):
    """The solution cells in the lab's order, written answers as comments."""
    parts = []
    for name in ids:
        source = cells.get(name, "")
        if not name.isidentifier() or _is_prose(source):
            source = "\n".join(f"# {line}" for line in source.splitlines())
        parts.append(f"# {name}\n{source}\n")
    return "\n".join(parts)


def _is_prose(source):
    try:
        compile(source, "cell", "exec")
    except (SyntaxError, ValueError):
        return "def " not in source and "=" not in source
    return False


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
