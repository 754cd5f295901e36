"""Processes that a call or a notebook started: mark, find and end them; and the plain data they exchange."""

from ringzero.processes.leftovers import END_SECONDS, descendants, end, marked, regular, remove
from ringzero.processes.parents import adopt_orphans, adopts_orphans, die_with_parent, stay_visible
from ringzero.processes.temporary import short_temporary_folder

__all__ = [
    "END_SECONDS",
    "adopt_orphans",
    "adopts_orphans",
    "descendants",
    "die_with_parent",
    "end",
    "marked",
    "regular",
    "remove",
    "short_temporary_folder",
    "stay_visible",
]
