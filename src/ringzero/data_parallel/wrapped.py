"""Whether a module still has the parameters that it had when it was wrapped.

A parameter that came later has no hook: nobody averages its gradient, and the ranks drift apart without a word. To
compare all parameters takes too long for every step. So torch tells ``_note`` of each parameter and module that is
registered, and the parameters are compared only if one came into a module that is wrapped. Insertion into a container
is not told, but changes the container's length.
"""

from collections.abc import Iterable
from functools import cache
from typing import Any

from torch.nn import Module, ModuleDict, ModuleList, Parameter, Sequential
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.utils.weak import WeakIdKeyDictionary

from ringzero.record.eager import none_compiled

_inside = WeakIdKeyDictionary()  # the modules in wrapped ones, and the wrapped ones themselves
_registered = [0]  # how many parameters and modules came into them


class Wrapped:
    """``module`` and the ``known`` parameters that it had when it was wrapped, or that were adopted later."""

    def __init__(self, module: Module, known: Iterable[Parameter]):
        _watch_registrations()
        self.module, self.known = module, set(known)
        self._look_at_modules()

    def _look_at_modules(self) -> None:
        modules = list(self.module.modules())
        for each in modules:
            _inside[each] = True
        self._containers = [each for each in modules if isinstance(each, ModuleList | Sequential | ModuleDict)]
        self._seen = self._now()

    def _now(self) -> tuple[int, int]:
        return _registered[0], sum([len(each._modules) for each in self._containers])

    @property
    def may_differ(self) -> bool:
        """Whether something came into the module, or into another wrapped one, since ``came`` was called."""
        return self._seen != self._now()

    def came(self) -> dict[str, Parameter]:
        """``{name: parameter}`` of those that are not known. This looks at all of them."""
        self._look_at_modules()
        parameters = (p for each in self.module.modules() for p in each._parameters.values())
        if all(parameter is None or parameter in self.known for parameter in parameters):
            return {}
        return {name: p for name, p in self.module.named_parameters() if p not in self.known}

    def forget(self) -> None:
        """Have ``may_differ`` be true."""
        self._seen = (-1, -1)


@cache
def _watch_registrations() -> None:
    register_module_parameter_registration_hook(_note)
    register_module_module_registration_hook(_note)


def _note(module: Module, _name: str, _registered_one: Any) -> None:
    if module in _inside:
        _registered[0] += 1


none_compiled(Wrapped)
