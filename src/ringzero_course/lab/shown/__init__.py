"""What a lab shows beside its checks: a student's collective drawn from its messages, explored and slid through."""

from ringzero_course.lab.shown.drawing import draw
from ringzero_course.lab.shown.explorer import explore
from ringzero_course.lab.shown.slider import slide

__all__ = ["draw", "explore", "slide"]
