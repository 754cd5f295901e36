"""What a check can claim about a run: each claim is a function that takes a ``Run`` and returns None, or why not.

Claims about one subject are in the module of its name, those that many labs make in ``oracle``. Here are the names that
a notebook needs.
"""

from ringzero_course.lab.claims import traffic
from ringzero_course.lab.claims.answers import counts, entry, gives, one_of, seal, sealed
from ringzero_course.lab.claims.collectives import all_of, everyone_has_the_sum, returns_a_view
from ringzero_course.lab.claims.values import close, equal, number, numbers, same

__all__ = [
    "all_of",
    "close",
    "counts",
    "entry",
    "equal",
    "everyone_has_the_sum",
    "gives",
    "number",
    "numbers",
    "one_of",
    "returns_a_view",
    "same",
    "seal",
    "sealed",
    "traffic",
]
