"""``ringzero.grading.live_notebook``, for tests."""

from ringzero.grading.live_notebook import Kernel, errors, grades, is_test, kernel_of, text_of

__all__ = ["Kernel", "assert_full_marks", "errors", "grades", "is_test", "kernel_of", "text_of"]


def assert_full_marks(reference, name, source):
    """``source`` in the place of the solution's function ``name`` gets all points of its check."""
    with reference.changed({name: source}):
        cell = reference.run(f"test_{name}")
    ((score, largest),) = grades([cell]).values()
    assert score == largest, text_of(cell)
