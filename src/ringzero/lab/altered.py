"""Whether a program on a rank replaced what the rank is measured with: functions of this package, of torch, the clock.

A rank counts its own bytes and reads its own clock, so a program that replaces ``MemoryTimeline.history`` has the count
that it likes. ``measures`` finds what was replaced, if it is still replaced when a case ends. It is no prison: a
program that puts everything back before, or changes the objects in which these functions keep numbers, is not found.
"""

import sys
import time
import weakref
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

PACKAGES = ("ringzero.lab.altered", "ringzero.lab.harness", "ringzero.lab.on_rank", "ringzero.lab.payloads",
            "ringzero.processes.plain", "ringzero.record")  # fmt: skip
OTHERS: dict[str, ModuleType | type] = {
    "time": time,
    "weakref": weakref,
    "torch.Tensor": torch.Tensor,
    "torch.UntypedStorage": torch.UntypedStorage,
    "torch.autograd.graph.saved_tensors_hooks": torch.autograd.graph.saved_tensors_hooks,
    "torch.utils._python_dispatch.TorchDispatchMode": TorchDispatchMode,
}
ALTERED = "a program replaced what ranks are measured with"


def measures() -> Callable[[], str | None]:
    """Note what this process measures with, and return a function that says what was replaced since.

    It returns the full name of a function, class, property or constant that is not the one it was, or None. Modules
    imported since do not count. Its helpers are nested functions, so a student's program cannot replace them by name.
    """

    def things() -> Iterator[tuple[str, ModuleType | type]]:
        yield from OTHERS.items()
        for name, module in sys.modules.items():
            if name.startswith(PACKAGES):
                yield name, module
                for key, value in vars(module).items():
                    if isinstance(value, type) and value.__module__ == name:
                        yield f"{name}.{key}", value

    def contents(thing: ModuleType | type) -> dict[str, tuple]:
        return {
            name: parts(value)
            for name, value in list(vars(thing).items())
            if callable(value) or hasattr(type(value), "__get__") or name.isupper()
        }

    def parts(value: Any) -> tuple:
        function = getattr(value, "__func__", value)  # of a class method or a static one
        if isinstance(function, FunctionType):
            return value, function.__code__, function.__defaults__, function.__kwdefaults__
        return (value,)

    def same(some: tuple, others: tuple) -> bool:
        return len(some) == len(others) and all(one is other for one, other in zip(some, others, strict=True))

    def altered() -> str | None:
        for name, thing, was in before:
            now = contents(thing)
            for key in was | now:
                if not same(was.get(key, ()), now.get(key, ())):
                    return f"{name}.{key}"
        return None

    before = [(name, thing, contents(thing)) for name, thing in things()]
    return altered
