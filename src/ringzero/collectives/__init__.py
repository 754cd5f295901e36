"""Collectives as schedules: data that is run, proved, counted and drawn.

    ALGORITHMS["all_reduce"]["ring"](4)                    a ``Schedule``, by collective and algorithm
    all_reduce(tensor, algorithm="ring")                   the same on real ranks; see ``api``

A generator of schedules is also a function in the module of its family, such as ``ring.ring_all_reduce``.
"""

from typing import TYPE_CHECKING

from ringzero.collectives.algorithms import ALGORITHMS, options, shapes, world_sizes
from ringzero.collectives.proof import ScheduleError, verify
from ringzero.collectives.schedule import COLLECTIVES, Round, Rounds, Schedule, Traffic, Transfer, chunk_bounds

if TYPE_CHECKING:
    from ringzero.collectives.api import (
        all_gather,
        all_reduce,
        all_to_all,
        barrier,
        broadcast,
        gather,
        reduce,
        reduce_scatter,
        scatter,
    )

__all__ = [
    "ALGORITHMS",
    "COLLECTIVES",
    "Round",
    "Rounds",
    "Schedule",
    "ScheduleError",
    "Traffic",
    "Transfer",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "chunk_bounds",
    "gather",
    "options",
    "reduce",
    "reduce_scatter",
    "scatter",
    "shapes",
    "verify",
    "world_sizes",
]


def __getattr__(name):  # lazily: the functions on tensors need torch, schedules do not
    if name in COLLECTIVES:
        from ringzero.collectives import api

        globals()[name] = getattr(api, name)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
