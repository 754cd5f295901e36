"""Which replica trains a parameter: found by the hook that it has on it."""

from collections.abc import Callable
from typing import Any
from weakref import ref

import torch
from torch.nn import Module, Parameter
from torch.utils.weak import WeakIdKeyDictionary

_hooked = WeakIdKeyDictionary()  # {parameter with a hook: (a weak reference to its replica, the hook's handle)}


def replica_of(parameter: torch.Tensor) -> Any:
    """The replica that trains ``parameter``, or None."""
    weak, _ = _hooked.get(parameter, (None, None))
    return weak and weak()


def hook(replica: Any, parameters: list[Parameter]) -> list[Any]:
    """Have ``replica`` told of each gradient that is complete. Returns the hooks' handles."""
    of_replica = _weakly(replica)
    handles = [parameter.register_post_accumulate_grad_hook(of_replica) for parameter in parameters]
    for parameter, handle in zip(parameters, handles, strict=True):
        _hooked[parameter] = ref(replica), handle
    return handles


def unhook(parameters: list[Parameter], handles: list[Any]) -> None:
    for handle in handles:
        handle.remove()
    for parameter in parameters:
        _hooked.pop(parameter, None)


def _weakly(replica: Any) -> Callable[[Parameter], None]:
    """Its hook on parameters. What torch keeps Python cannot see, so the hook may not keep the replica alive."""
    weak, kind = ref(replica), type(replica).__name__

    def hook(parameter: Parameter) -> None:
        replica = weak()
        if replica is None:
            raise RuntimeError(
                f"the {kind} that averages this gradient is gone; keep it while its module is trained, or call its "
                "leave() before"
            )
        replica.gradient_complete(parameter)

    return hook


def leave_earlier_replica(module: Module, kind: type) -> None:
    """Have the replica that ``module`` is in already, if any, leave it. ``kind`` is the class of replicas."""
    if inside := next((inner for inner in module.modules() if isinstance(inner, kind)), None):
        raise TypeError(
            f"there is a {type(inside).__name__} inside of what was given, a {type(module).__name__}; give the module "
            "in it, its attribute `module`"
        )
    for name, parameter in module.named_parameters():
        earlier, (_, handle) = replica_of(parameter), _hooked.get(parameter, (None, None))
        if earlier is None:
            if handle is not None:
                handle.remove()
            continue
        if earlier.module is not module:
            raise ValueError(
                f"{name} is in a {type(earlier).__name__} of a {type(earlier.module).__name__} already, and would be "
                f"averaged twice; wrap one module that holds both, or call leave() of the first"
            )
        earlier.leave()
