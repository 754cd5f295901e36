"""``ringzero_course.authoring.live_notebook``, for tests."""

from ringzero_course.authoring.live_notebook import Kernel, errors, grades, is_test, kernel_of, text_of

__all__ = ["Kernel", "assert_all_points", "assert_full_marks", "errors", "grades", "is_test", "kernel_of", "text_of"]


def assert_all_points(cells):
    """The test cells among them got every point; the message of a failure is the tables of those that did not."""
    tables = [text_of(cell) for cell in cells if is_test(cell) and lost_points(cell)]
    assert not tables, "\n\n".join(tables)


def lost_points(cell):
    ((score, largest),) = grades([cell]).values()
    return score < largest


def assert_full_marks(reference, name, source):
    """``source`` in the place of the solution's function ``name`` gets all points of its check."""
    with reference.changed({name: source}):
        assert_all_points([reference.run(f"test_{name}")])
