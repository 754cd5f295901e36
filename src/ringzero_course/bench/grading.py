"""``nbgrader autograde`` of this course beside stock nbgrader, on the same submissions: seconds for each.

The stock contender is nbgrader's own ``Autograde`` with its own settings but a longer time for a cell, and each call
of ranks is a cold ``torchrun``, as a notebook without this package would have it. Ours grades as the course is set up,
with sandboxes and without. The contenders take turns; each grades the same class again. All must give the same scores.
"""

import copy
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack

import click

from ringzero_course.bench import runner
from ringzero_course.boxes import sandbox

OURS, TRUSTED, STOCK = "in sandboxes", "without sandboxes", "stock nbgrader, cold torchrun"
STOCK_CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "ringzero"
c.CourseDirectory.root = {root!r}
c.Execute.timeout = 600
"""
COLD = """import functools
import ringzero
ringzero.launch = functools.partial(ringzero.launch, warm=False)
WORLD_SIZE, DEVICE = 4, "auto"  # papermill injects them into ours"""


def rows(lab="02_ring_allreduce", submissions=4, repeats=3):
    """A class graded in sandboxes, beside stock nbgrader with cold torchrun, and without sandboxes.

    Raises RuntimeError where a contender does not give full marks to all.
    """
    from ringzero_course.authoring import submission
    from ringzero_course.grading import build_labs
    from ringzero_course.grading.course import temporary_course

    _check_course_and_sandbox()
    notebook = submission.submission(lab)
    with ExitStack() as stack:
        source = build_labs.source_notebook(lab)
        ours, stock = (stack.enter_context(temporary_course(lab, source)) for _ in range(2))
        (stock.top / "nbgrader_config.py").write_text(STOCK_CONFIG.format(root=str(stock.root)))
        for course, handed_in in ((ours, notebook), (stock, _cold(notebook))):
            for number in range(submissions):
                course.submit(f"student{number}", lab, handed_in)
        contenders = {
            OURS: (ours, "--ExecuteWithPapermill.sandbox=True"),
            TRUSTED: (ours, "--ExecuteWithPapermill.sandbox=False"),
            STOCK: (stock, "--log-level=WARN"),
        }
        seconds = {name: [] for name in contenders}
        for _, name in runner.progress([(turn, name) for turn in range(repeats) for name in contenders]):
            seconds[name].append(_timed(*contenders[name], lab, submissions))
    median = {name: statistics.median(each) / submissions for name, each in seconds.items()}
    for peer in (STOCK, TRUSTED):
        yield runner.row(f"{lab}, a submission", OURS, median[OURS], median[peer], peer, "s")


def _check_course_and_sandbox():
    from ringzero_course.grading import course

    try:
        course.repository()
    except FileNotFoundError as error:
        raise click.ClickException(str(error)) from None
    if missing := sandbox.missing_ability():
        what, seen, fix = missing
        raise click.ClickException(f"a sandbox needs {what} ({seen}). {fix}")


def _cold(notebook):
    notebook = copy.deepcopy(notebook)
    place = next(i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", []))
    cell = copy.deepcopy(notebook.cells[place])
    cell.update(id="cold", source=COLD, metadata={})
    notebook.cells.insert(place + 1, cell)
    return notebook


def _timed(course, option, lab, submissions):
    start = time.perf_counter()
    words = [sys.executable, "-m", "nbgrader", "autograde", lab, "--force", option]
    done = subprocess.run(words, cwd=course.top, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    seconds = time.perf_counter() - start
    scores = _scores(course, lab)
    if scores != [1.0] * submissions:
        raise RuntimeError(f"{option} gave {scores}:\n{done.stderr[-2000:]}")
    return seconds


def _scores(course, lab):
    """Of each student, the share of the points that no person gives."""
    found = []
    with course.gradebook() as gradebook:
        for each in gradebook.assignment_submissions(lab):
            grades = [g for notebook in each.notebooks for g in notebook.grades if g.cell.cell_type == "code"]
            found.append(sum(g.auto_score or 0 for g in grades) / sum(g.max_score for g in grades))
    return found


command = runner.command(
    rows,
    lab=(str, "Whose reference solution is handed in."),
    submissions=(runner.COUNT, "In a class."),
    repeats=(runner.COUNT, "Of each contender."),
)
