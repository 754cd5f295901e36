"""What a lab shows beside its checks: a student's collective drawn from its messages, explored and slid through."""

from ringzero.lab.shown.drawing import draw
from ringzero.lab.shown.explorer import explore
from ringzero.lab.shown.slider import slide

__all__ = ["draw", "explore", "slide"]
