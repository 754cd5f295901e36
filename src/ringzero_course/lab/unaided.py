"""What a student is to write is in the library and in torch, too. Meanwhile, what is there raises instead."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType

from ringzero.record import sources

AVERAGERS = "torch.distributed.algorithms.model_averaging"
HOOKS = "torch.distributed.algorithms.ddp_comm_hooks"
FORMATS = "ringzero.collectives.formats"  # signs in bits, and numbers in blocks with a scale
UNSYNCED = ("ringzero.unsynced", FORMATS, AVERAGERS, HOOKS)  # whatever trains without full synchronisation


@contextmanager
def unaided(*packages: str) -> Iterator[None]:
    """Inside, a student's code cannot import anything of these packages, and nobody can call what they define.

    Functions with variables of an enclosing function are left as they are.
    """
    finder = _Refusing(packages)
    hidden = finder.hidden = {name: module for name, module in sys.modules.items() if finder.is_inside(name)}
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
        self._packages, self.hidden = packages, dict[str, ModuleType]()

    def is_inside(self, name):
        return any(name == package or name.startswith(package + ".") for package in self._packages)

    def find_spec(self, name, path=None, target=None):
        if not self.is_inside(name):
            return None
        if _is_imported_by_a_caller():
            raise ImportError(f"{name} is not to be used here: write it yourself")
        known = self.hidden.get(name)
        return None if known is None else ModuleSpec(name, _Known(known))


class _Known(Loader):
    """Gives a library the module that was imported before."""

    def __init__(self, module):
        self._module = module

    def create_module(self, spec):
        return self._module

    def exec_module(self, module):
        pass


def _is_imported_by_a_caller():
    """Whether a student's line makes this import, and not a line of a library that the student calls."""
    frame = sys._getframe(2)
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None and sources.is_callers(frame.f_code.co_filename)


def _functions(module):
    """Functions and methods that the module defines itself, and not those that its classes have from others."""
    for thing in list(vars(module).values()):
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        for each in list(vars(thing).values()) if isinstance(thing, type) else [thing]:
            function = getattr(each, "__func__", each)
            if (
                isinstance(function, FunctionType)
                and function.__globals__ is vars(module)
                and not function.__code__.co_freevars
            ):
                yield function


def _refuse(*_, **__):
    raise RuntimeError("what the library and torch have of this is not to be used here: write it yourself")
