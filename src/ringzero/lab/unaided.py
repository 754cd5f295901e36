"""What a student is to write is in the library and in torch, too. Meanwhile, what is there raises instead."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType

AVERAGERS = "torch.distributed.algorithms.model_averaging"
HOOKS = "torch.distributed.algorithms.ddp_comm_hooks"
UNSYNCED = ("ringzero.unsynced", AVERAGERS, HOOKS)  # whatever trains without full synchronisation


@contextmanager
def unaided(*packages: str) -> Iterator[None]:
    """Inside, nothing of these packages can be imported or called, also by those who imported it before.

    Functions with variables of an enclosing function are left as they are.
    """
    finder = _Refusing(packages)
    hidden = {name: module for name, module in sys.modules.items() if finder.is_inside(name)}
    with ExitStack() as stack:
        for name, module in hidden.items():
            del sys.modules[name]
            for function in _functions(module):
                stack.callback(setattr, function, "__code__", function.__code__)
                function.__code__ = _refuse.__code__
        stack.callback(sys.modules.update, hidden)
        sys.meta_path.insert(0, finder)
        stack.callback(sys.meta_path.remove, finder)
        yield


class _Refusing:
    """An importer that finds nothing in some packages."""

    def __init__(self, packages):
        self._packages = packages

    def is_inside(self, name):
        return any(name == package or name.startswith(package + ".") for package in self._packages)

    def find_spec(self, name, path=None, target=None):
        if self.is_inside(name):
            raise ImportError(f"{name} is not to be used here: write it yourself")


def _functions(module):
    """Functions and methods that the module defines itself."""
    for thing in list(vars(module).values()):
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        for each in list(vars(thing).values()) if isinstance(thing, type) else [thing]:
            function = getattr(each, "__func__", each)
            if isinstance(function, FunctionType) and not function.__code__.co_freevars:
                yield function


def _refuse(*_, **__):
    raise RuntimeError("what the library and torch have of this is not to be used here: write it yourself")
