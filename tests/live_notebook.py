"""``ringzero.grading.live_notebook``, for tests."""

from ringzero.grading.live_notebook import Kernel, errors, grades, is_test, kernel_of, text_of

__all__ = ["Kernel", "errors", "grades", "is_test", "kernel_of", "text_of"]
