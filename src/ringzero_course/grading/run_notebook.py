"""Run a submission's cells with papermill, in scratch folders and under watch: once, or twice where that is fairer."""

import copy
import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from contextvars import ContextVar

from papermill.engines import papermill_engines
from papermill.iorw import load_notebook_node
from papermill.parameterize import parameterize_notebook

from ringzero_course.boxes.faults import GraderFault
from ringzero_course.boxes.fence import Fence, why_no_room
from ringzero_course.boxes.watches import DiskWatch, MemoryWatch
from ringzero_course.grading import verdict
from ringzero_course.grading.kernels import ENGINE, RANKS, STUDENT, is_injected

KILLED = re.compile(r"KERNEL DIED in cell \[\d+\] \(SIGKILL\)")  # a note

# What stands for ``run`` below, if anything does: see ``ahead.py``.
runner: ContextVar[Callable | None] = ContextVar("runner", default=None)


def as_chosen(nb, settings):
    """As ``run``, by what stands for it."""
    return (runner.get() or run)(nb, settings)


def run(nb, settings):
    """Run a copy of ``nb``: the cells as they came out, what happened as ``[(kind, sentence)]``, the seconds it took.

    A student's kernel that SIGKILL ended may have been ended from outside: then the notebook runs a second time, which
    counts. Raises only for faults of the grader, such as a kernel that does not start, or no room on the disk.
    """
    ran, notes, seconds = _run(nb, settings)
    if any(KILLED.match(sentence) for _, sentence in notes) and verdict.LIMIT not in dict(notes):
        ran, notes, seconds = _run(nb, settings)
    if (why := why_no_room()) is not None:
        raise GraderFault(why)
    return ran, notes, seconds


def _run(nb, settings):
    box = settings.box
    kernel = nb.metadata.get("kernelspec", {}).get("name") or "python3"
    nb = load_notebook_node(_with_a_place_for_parameters(nb))
    nb = parameterize_notebook(nb, dict(settings.parameters), kernel_name=kernel, language="python", engine_name=ENGINE)
    notes = []
    start = time.monotonic()
    with ExitStack() as stack:
        fence = stack.enter_context(Fence())
        if box is not None:
            watches = (
                MemoryWatch(box, lambda said: notes.append((verdict.LIMIT, said))),
                DiskWatch(
                    [fence.folder.parent / name for name in (STUDENT, RANKS)],
                    box.temporary,
                    lambda said: notes.append((verdict.LIMIT, said)),
                ),
            )
            for watch in watches:
                stack.enter_context(watch)
        papermill_engines.execute_notebook_with_engine(
            ENGINE,
            nb,
            kernel_name=kernel,
            progress_bar=False,
            fence=fence,
            settings=settings,
            notes=notes,
        )
    seconds = round(time.monotonic() - start, 2)
    return [cell for cell in nb.cells if not is_injected(cell)], notes, seconds


def _with_a_place_for_parameters(nb):
    """A copy with a cell tagged ``parameters``, and without what papermill injected on a student's machine."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        if is_injected(cell):
            cell.metadata["tags"] = []
            if "nbgrader" not in cell.metadata:
                cell.source = ""
    if not any("parameters" in cell.metadata.get("tags", []) for cell in nb.cells):
        for cell in nb.cells:
            if cell.cell_type == "code" and re.search(r"^WORLD_SIZE\s*=", cell.source, re.MULTILINE):
                cell.metadata["tags"] = ["parameters"]
                break
    return nb
