"""Units of stage 3 that are compiled: gathered and freed around what was compiled, and not in it."""

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch.nn import Module


class Compiled:
    """Where ``compile()`` was called of one of the ``units`` in ``module``, or of what holds units.

    What was compiled would have ``hooks``, those on the modules' calls, inside. ``around`` is the ``Gatherer``.
    """

    def __init__(self, module: Module, units: Mapping[Module, Any], around: Any, hooks: dict[Module, list[Any]]):
        self._units, self._around, self._hooks = units, around, hooks
        self._hold_units = [
            each for each in module.modules() if any(inner in units for inner in each.modules() if inner is not each)
        ]
        self._found: dict[Module, tuple[Any, Any]] = {}  # what a module's compile() left, and what is in its place

    def gather_outside(self) -> None:
        """Look for what was compiled since the last time. A module that holds units runs as it was written."""
        for each in (*self._hold_units, *self._units):
            compiled = each._compiled_call_impl
            if compiled is None or (each in self._found and self._found[each][1] is compiled):
                continue
            if each in self._hold_units:
                warnings.warn(
                    f"the compiled {type(each).__name__} holds units of ZeroStage3, which are gathered between its "
                    "operations, so it runs as if it were not compiled; name it in `units`, or call compile() of the "
                    "units that it holds",
                    stacklevel=2,
                )
                ours = each._call_impl
            else:
                for hook in self._hooks.pop(each, []):
                    hook.remove()
                ours = partial(self._call, each, self._units[each], compiled)
            self._found[each], each._compiled_call_impl = (compiled, ours), ours

    def _call(self, each: Module, unit: Any, compiled: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        args, kwargs = self._around.before_forward(unit, each, each, args, kwargs) or (args, kwargs)
        try:
            output = compiled(*args, **kwargs)
            self._around.after_forward(unit, each, args, output)
        finally:
            self._around.forward_over(unit)
        return output

    def leave(self) -> None:
        for each, (compiled, ours) in self._found.items():
            if each._compiled_call_impl is ours:
                each._compiled_call_impl = compiled
