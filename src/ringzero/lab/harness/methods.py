"""A function of plain numbers about methods that synchronise less: called without the library's own formulas."""

from collections.abc import Callable
from typing import Any

from ringzero.lab.unaided import UNSYNCED, unaided


def plainly(function: Callable, *args: Any, **options: Any) -> Any:
    """``function`` of plain values."""
    with unaided(*UNSYNCED, "ringzero.costs"):
        return function(*args, **options)
