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
        return [*chain.from_iterable(each.values() for each in self._dicts)]


none_compiled(Structure)


# ---- of a replica


def check_wrapped(model: Any, at_all_costs: bool = False) -> None:
    """Raise RuntimeError, with names, if the module has trained parameters that were not wrapped.

    It looks at all of them only if the module holds others than the last time, or ``at_all_costs``.
    """
    if model._structure is None or not (at_all_costs or model._structure.differs):
        return
    # What is computed from parameters, as fast weights in functional_call, hands its gradient on to them.
    now = {name: p for name, p in model.module.named_parameters() if p.is_leaf}
    came = [name for name, p in now.items() if p.requires_grad and p not in model._known]
    if late := [name for name in came if name not in model._unused]:
        raise came_late(model, late)
    model._frozen = [p for name, p in now.items() if p not in model._names and name not in model._unused]
    model._structure = Structure(model.module)


def came_late(model: Any, names: list[str]) -> RuntimeError:
    kind = type(model).__name__
    return RuntimeError(
        f"{', '.join(names)} came into the {type(model.module).__name__} after it was wrapped, and no rank would "
        f"average the gradient: wrap the module again on every rank with {kind}(module), and give the optimizer "
        "the parameters that the module has now; or freeze what is not trained by requires_grad_(False)"
    )


def check_gone(model: Any) -> None:
    """Raise RuntimeError, with names, if the module is not what was wrapped: a better reason than no gradients."""
    check_wrapped(model, at_all_costs=True)
    here = set(model.module.parameters())
    if gone := [name for name, p in model.trained.items() if p not in here and p.grad is None]:
        raise RuntimeError(
            f"{', '.join(gone)} left the {type(model.module).__name__} after it was wrapped, and got no gradient; "
            f"wrap the module again on every rank with {type(model).__name__}(module)"
        )
    if froze := [name for name, p in model.trained.items() if not p.requires_grad and p.grad is None]:
        raise RuntimeError(
            f"{', '.join(froze)} frozen after the {type(model.module).__name__} was wrapped, and got no gradient; "
            f"wrap the module again on every rank with {type(model).__name__}(module)"
        )
