"""Whether a module still has the parameters that it had when it was wrapped.

A parameter that came later has no hook: nobody averages its gradient, and the ranks drift apart without a word. To
walk over all names takes milliseconds. So the dictionaries in which modules hold their parameters and submodules are
noted once, and each pass looks whether they hold the same objects: 0.1 ms for 1,000 parameters.
"""

from itertools import chain
from operator import is_
from typing import Any

from torch.nn import Module

from ringzero.record.eager import none_compiled


class Structure:
    """Which parameters and submodules a module, and those in it, held when this was made."""

    def __init__(self, module: Module):
        self._dicts: list[dict] = [each for m in module.modules() for each in (m._parameters, m._modules)]
        self._held = self._holds_now()

    @property
    def differs(self) -> bool:
        """Whether the module holds others by now."""
        now = self._holds_now()
        return len(now) != len(self._held) or not all(map(is_, now, self._held))

    def _holds_now(self) -> list[Any]:
        return [*chain.from_iterable(map(dict.values, self._dicts))]


none_compiled(Structure)
