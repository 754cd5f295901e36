"""Whether a file can be graded as a lab's notebook, before anything of it runs."""

import json
import stat

import nbformat

from ringzero_course.grading import readable

LARGEST_NOTEBOOK = 50_000_000  # bytes
MOST_CELLS = 2_000
LONGEST_TEXT = 500_000  # characters of all cells; what shows them is slow


def why_invalid(path, source_cells):
    """Why the file ``path`` cannot be graded as the notebook with the cells ``source_cells``; "" when it can."""
    if not path.exists() and not path.is_symlink():
        others = sorted(other.name for other in path.parent.iterdir())
        found = f" The submission holds {', '.join(others[:5])}." if others else " The submission is empty."
        return f"There is no {path.name}.{found} Submit the notebook under the name it was handed out with."
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return f"{path.name} is not a file (a link or a folder)."
    if status.st_size > LARGEST_NOTEBOOK:
        return f"{path.name} has {status.st_size} bytes, over the limit of {LARGEST_NOTEBOOK}. Clear its outputs."
    if status.st_size == 0:
        return f"{path.name} is empty."
    try:
        data = json.loads(path.read_bytes().decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError:
        return f"{path.name} is not a text file, so not a notebook."
    except (ValueError, RecursionError) as error:
        return f"{path.name} is not a notebook: it is not valid JSON ({error})."
    return _why_not_a_notebook(path.name, data, source_cells)


def _no_constant(name):
    raise ValueError(f"it holds {name}, which JSON does not have")


def _why_not_a_notebook(name, data, source_cells):
    if why := readable.why_no_json(data):
        return f"{name} is not a notebook: {why}."
    version = data.get("nbformat") if isinstance(data, dict) else None
    if version != 4:
        return f"{name} has nbformat {version!r}; grading reads 4. Open it in JupyterLab and save it again."
    try:
        notebook = nbformat.from_dict(data)
        _, notebook = nbformat.validator.normalize(notebook)
        nbformat.validate(notebook)
    except Exception as error:  # nbformat fails on odd data in many ways
        return f"{name} is not a valid notebook: {str(error).partition(chr(10))[0][:200] or type(error).__name__}"
    if len(notebook.cells) > MOST_CELLS:
        return f"{name} has {len(notebook.cells)} cells, over the limit of {MOST_CELLS}. Take out those that are empty."
    if (length := sum(len(cell.source) for cell in notebook.cells)) > LONGEST_TEXT:
        return f"{name} has cells with {length} characters, over the limit of {LONGEST_TEXT}. Take out what is no code."
    if not source_cells & {id_of(cell) for cell in notebook.cells}:
        return f"{name} holds none of the lab's cells: it is another notebook."
    return ""


def id_of(cell):
    metadata = cell.metadata.get("nbgrader")
    grade_id = metadata.get("grade_id") if isinstance(metadata, dict) else None
    return grade_id if isinstance(grade_id, str) else None
