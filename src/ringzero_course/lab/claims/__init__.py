"""What a check can claim about a run: each claim is a function that takes a ``Run`` and returns None, or why not.

Claims about one subject are in the module of its name. Those that many labs make are here, and in ``oracle``.
"""

from ringzero_course.lab.claims import (
    formulas,
    traffic,
)
from ringzero_course.lab.claims.answers import counts, entry, gives, one_of, seal, sealed
from ringzero_course.lab.claims.collectives import (
    all_of,
    everyone_has_every_chunk,
    everyone_has_the_roots,
    everyone_has_the_sum,
    given,
    has_its_chunk_of_the_sum,
    left_everything_else_alone,
    nothing_changes,
    only_its_chunk_changes,
    returns_a_view,
    returns_everyones_chunk,
    returns_its_chunk_of_the_sum,
    returns_new_memory,
    returns_the_roots_chunk,
    the_others_are_unchanged,
    the_root_has_every_chunk,
    the_root_has_the_sum,
)
from ringzero_course.lab.claims.values import close, close_by_name, equal, number, numbers, same

__all__ = [
    "all_of",
    "close",
    "close_by_name",
    "counts",
    "entry",
    "equal",
    "everyone_has_every_chunk",
    "everyone_has_the_roots",
    "everyone_has_the_sum",
    "formulas",
    "given",
    "gives",
    "has_its_chunk_of_the_sum",
    "left_everything_else_alone",
    "nothing_changes",
    "number",
    "numbers",
    "one_of",
    "only_its_chunk_changes",
    "returns_a_view",
    "returns_everyones_chunk",
    "returns_new_memory",
    "returns_its_chunk_of_the_sum",
    "returns_the_roots_chunk",
    "same",
    "seal",
    "sealed",
    "the_others_are_unchanged",
    "the_root_has_every_chunk",
    "the_root_has_the_sum",
    "traffic",
]
