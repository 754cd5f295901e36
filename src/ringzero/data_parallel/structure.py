"""Whether a module still has the parameters that it had when it was wrapped.

A parameter that came later has no hook: nobody averages its gradient, and the ranks drift apart without a word. To
walk over all names takes milliseconds. So the dictionaries in which modules hold their parameters and submodules are
noted once, and each pass looks whether they hold the same objects: 0.1 ms for 1,000 parameters.
"""

from operator import is_

from torch.nn import Module

from ringzero.record.eager import none_compiled


class Structure:
    """Which parameters and submodules a module, and those in it, held when this was made."""

    def __init__(self, module: Module):
        self._dicts: list[dict] = [each for m in module.modules() for each in (m._parameters, m._modules)]
        self._lengths = [len(each) for each in self._dicts]
        self._holders = [each for each in self._dicts for _ in each]
        self._names = [name for each in self._dicts for name in each]
        self._held = [value for each in self._dicts for value in each.values()]

    @property
    def differs(self) -> bool:
        """Whether the module holds others by now."""
        if list(map(len, self._dicts)) != self._lengths:
            return True
        return not all(map(is_, map(dict.get, self._holders, self._names), self._held))


none_compiled(Structure)
