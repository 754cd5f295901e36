"""What ``ringzero doctor`` says about the course: its packages, a browser for its tests, boxes for submissions."""

import importlib.metadata
import importlib.util
import shutil
import tempfile
from pathlib import Path

from ringzero.doctor import DEGRADED, OK, Finding, check, installing


def _packages(extra: str, names: list[str]) -> Finding:
    missing = []
    for name in names:
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return Finding(extra, DEGRADED, f"without {', '.join(missing)}", installing(f'"ringzero-course[{extra}]"'))
    return Finding(extra, OK, ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names))


@check
def temporary() -> Finding:
    from ringzero_course.boxes import fence

    if said := fence.why_not_in_the_usual_folder():
        fix = "export TMPDIR=/t, or another folder with so short a name, where it should have its files elsewhere"
        return Finding("temporary files", DEGRADED, said, fix)
    return Finding("temporary files", OK, tempfile.gettempdir())


@check
def book() -> Finding:
    return _packages("book", ["jupyter-book"])


@check
def labs() -> Finding:
    return _packages("labs", ["jupyterlab", "ipywidgets"])


@check
def grading() -> Finding:
    return _packages("grading", ["nbgrader", "papermill", "jupytext"])


@check
def chromium() -> Finding:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        return Finding("chromium", DEGRADED, "none; the tests of built pages are skipped", "apt-get install chromium")
    return Finding("chromium", OK, found)


HOW = "memory and disk are looked at twice a second, and what takes more is ended"


@check
def sandbox() -> Finding:
    from ringzero_course.boxes import sandbox as boxes

    there = importlib.util.find_spec("nbgrader") is not None  # else the check "grading" says so
    box, clock = _limits_in_force() if there else (boxes.Limits(), "")
    missing = boxes.missing_ability.__wrapped__()  # not what was found earlier
    if box is None:
        fix = "take c.ExecuteWithPapermill.sandbox out of nbgrader_config.py"
        if missing is not None:
            fix += f", and then: {missing[2]}"
        return Finding("sandbox", DEGRADED, f"submissions are graded without one, with your rights{clock}", fix)
    if missing is not None:
        what, seen, fix = missing
        return Finding("sandbox", DEGRADED, f"submissions are not graded here: it needs {what} ({seen})", fix)
    return Finding("sandbox", OK, f"submissions are graded in sandboxes, each with at most {box}{clock}; {HOW}")


def _limits_in_force():
    """The limits of a box, or None; those of time and output in words. By the configuration in this folder, if any."""
    from ringzero_course.grading.course import CONFIG, Course
    from ringzero_course.grading.execute import ExecuteWithPapermill

    config = Course(Path.cwd()).configuration() if Path(CONFIG).is_file() else None
    settings = ExecuteWithPapermill(config=config).settings()
    clock = (
        f", {settings.cell_seconds:g} s a cell, {settings.notebook_seconds:g} s a notebook, "
        f"{settings.output_bytes / 1e6:g} MB printed by a cell"
    )
    return settings.box, clock + (f" (as {CONFIG} in this folder says)" if config is not None else "")
