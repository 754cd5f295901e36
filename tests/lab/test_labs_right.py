"""Right solutions that are not the reference, ``tests/right/LAB/NAME.py``, get every point of their cells' checks.

A file is written as a wrong solution is (``ringzero_course.authoring.submission``), without the lines on what
catches it.
"""

import contextlib
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

from ringzero_course.authoring import submission
from tests.live_notebook import assert_all_points

RIGHT = sorted((Path(__file__).parents[1] / "right").glob("*/*.py"))


@pytest.mark.parametrize("by_nccls_rules", [False, True])
@pytest.mark.parametrize(
    ("reference", "path"),
    [pytest.param(path.parent.name, path, id=f"{path.parent.name}-{path.stem}") for path in RIGHT],
    indirect=["reference"],
    scope="session",  # of the kernel, which all tests of a lab share
)
def test_another_right_solution_gets_every_point(reference, path, by_nccls_rules):
    """By NCCL's rules on 2 ranks, as on a node with two GPUs."""
    replacements = submission.read_replacements(path, path.parent.name)
    ranks = reference.with_ranks(2, "strict") if by_nccls_rules else contextlib.nullcontext()
    try:
        with ranks, reference.changed(replacements):
            assert_all_points([reference.run(f"test_{name}") for name in replacements])
    finally:
        for log in Path.cwd().glob("debug-*.log"):  # one of them writes logs
            log.unlink()
