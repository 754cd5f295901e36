"""Collectives as schedules: data that is run, proved, counted and drawn."""

from ringzero.collectives.flat import flat_all_reduce, flat_broadcast, flat_reduce
from ringzero.collectives.ring import ring_all_gather, ring_all_reduce, ring_broadcast, ring_reduce_scatter
from ringzero.collectives.schedule import Round, Schedule, Transfer, chunk_bounds
from ringzero.collectives.verify import ScheduleError, verify

_NEED_TORCH = ("all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter")

__all__ = [
    *_NEED_TORCH,
    "Round",
    "Schedule",
    "ScheduleError",
    "Transfer",
    "chunk_bounds",
    "flat_all_reduce",
    "flat_broadcast",
    "flat_reduce",
    "ring_all_gather",
    "ring_all_reduce",
    "ring_broadcast",
    "ring_reduce_scatter",
    "verify",
]


def __getattr__(name):
    if name in _NEED_TORCH:
        from ringzero.collectives import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
