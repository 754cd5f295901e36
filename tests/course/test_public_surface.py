"""What a user imports: names on one screen, typed; modules under their own names; nothing heavier than it must be."""

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ringzero

PACKAGE = Path(ringzero.__file__).parent
SRC = PACKAGE.parent
OLD_NAME = "ringzero.lab"  # says where the labs' checks are now
# Rooms whose names are for users; where a room has no ``__all__``, all public names of its modules are.
PUBLIC = (
    *("ringzero", "ringzero.collectives", "ringzero.costs", "ringzero.data_parallel", "ringzero.drawing"),
    *("ringzero.measure", "ringzero.network", "ringzero.processes", "ringzero.ranks", "ringzero.record"),
    *("ringzero.unsynced", "ringzero.zero"),
    *("ringzero_course.figures", "ringzero_course.lab", "ringzero_course.tasks"),
)


def module_names(package: str = "ringzero") -> list[str]:
    """Every module of a package by its full name, the package first."""
    path = SRC.joinpath(*package.split("."))
    below = (found.name for found in pkgutil.walk_packages([str(path)], f"{package}."))
    return [package, *(name for name in below if name != OLD_NAME)]


def public_functions(package: str) -> Iterator[Callable]:
    """The public functions of a package, and the public methods, properties and constructors of its classes."""
    root = importlib.import_module(package)
    if hasattr(root, "__all__"):
        values = [getattr(root, name) for name in root.__all__]
    else:
        modules = [importlib.import_module(name) for name in module_names(package)]
        values = [v for m in modules for name, v in vars(m).items() if name[0] != "_" and _is_of(v, m.__name__)]
    for value in values:
        if inspect.isclass(value):
            yield from _methods(value)
        elif inspect.ismodule(value):
            yield from (v for name, v in vars(value).items() if name[0] != "_" and _is_of(v, value.__name__))
        elif inspect.isfunction(value):
            yield inspect.unwrap(value)


def _is_of(value: object, module: str) -> bool:
    return (inspect.isfunction(value) or inspect.isclass(value)) and value.__module__ == module


def _methods(kind: type) -> Iterator[Callable]:
    for name, value in vars(kind).items():
        function = value.fget if isinstance(value, property) else getattr(value, "func", value)
        function = inspect.unwrap(getattr(function, "__func__", function)) if callable(function) else None
        written_here = inspect.isfunction(function) and function.__code__.co_filename.startswith(str(SRC))
        if written_here and (not name.startswith("_") or name in ("__init__", "__call__", "__enter__")):
            yield function


def not_annotated(function: Callable) -> list[str]:
    """The parameters, and "return", that have no annotation; of a method ``self`` needs none."""
    missing = [name for name in inspect.signature(function).parameters if name not in function.__annotations__]
    returns = [] if function.__name__ == "__init__" or "return" in function.__annotations__ else ["return"]
    return [name for name in missing if name not in ("self", "cls")] + returns


def test_public_functions_are_annotated():
    wrong = {}
    for package in PUBLIC:
        for function in public_functions(package):
            if missing := not_annotated(function):
                code = function.__code__
                file = Path(code.co_filename).relative_to(SRC.parent)
                wrong[f"{file}:{code.co_firstlineno}: {function.__qualname__}: {', '.join(missing)}"] = None
    assert not wrong, f"{len(wrong)} are not fully annotated:\n" + "\n".join(wrong)


def test_a_missing_annotation_is_found():
    def good(a: int, *rest: str, b: float = 1.0) -> None: ...
    def bad(self, a: int, b, *rest, c: int = 0): ...

    assert not_annotated(good) == []
    assert not_annotated(bad) == ["b", "rest", "return"]


def test_the_top_level_fits_on_one_screen():
    assert len(ringzero.__all__) <= 20
    assert set(ringzero.__all__) <= set(dir(ringzero))
    assert all(getattr(ringzero, name) is not None for name in ringzero.__all__)
    assert (PACKAGE / "py.typed").exists()


def in_a_new_interpreter(code: str) -> object:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


HIDDEN = """
import importlib, json, sys
names = {names!r}
modules = {{name: importlib.import_module(name) for name in names}}
hidden = []
for name, module in modules.items():
    package, _, last = name.rpartition(".")
    if package and getattr(modules[package], last) is not module:
        hidden.append(f"{{name}} is hidden by {{getattr(modules[package], last)!r}}")
print(json.dumps(hidden))
"""


def test_every_module_is_found_under_its_own_name():
    """After ``import a.b.c as m``, m is that module, and not a function of the same name in the package a.b."""
    assert in_a_new_interpreter(HIDDEN.format(names=[*module_names(), *module_names("ringzero_course")])) == []


def test_an_old_notebook_is_told_where_the_checks_are_now():
    with pytest.raises(ImportError, match="write 'from ringzero_course.lab import …'"):
        importlib.import_module(OLD_NAME)


LIGHT = """
import json, sys
STEPS = (
    ("numpy torch click", "import ringzero.costs.page.alpha_beta, ringzero.costs.page.memory, ringzero.costs.page.transformer"),
    ("numpy torch IPython matplotlib nbformat", "import ringzero, ringzero.cli"),
    ("torch IPython matplotlib", "import ringzero.collectives.auto, ringzero.network, ringzero.network.nccl_trees"),
    ("torch IPython matplotlib", "from ringzero_course import figures"),
    ("torch IPython matplotlib", "figures.spacetime(ringzero.collectives.ring.ring_all_reduce(4))"),
)
came = {}
for heavy, code in STEPS:
    exec(code)
    came[code] = sorted(set(heavy.split()) & set(sys.modules))
print(json.dumps({code: heavy for code, heavy in came.items() if heavy}))
"""


def test_what_needs_no_torch_imports_none():
    assert in_a_new_interpreter(LIGHT) == {}
