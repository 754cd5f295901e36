"""A notebook's functions as bytes, which any process with this package can load: cloudpickle, and what it lacks."""

import functools
import importlib
import io
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import cloudpickle


def dumps(value: Any) -> bytes:
    """``value`` as ``pickle.loads`` takes it. Raises whatever the value raises that cannot be pickled."""
    with io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()


class _Pickler(cloudpickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, functools._lru_cache_wrapper) and _is_by_value(obj.__module__):
            return _empty_cache, (obj.cache_parameters(),), obj.__wrapped__, None, None, _fill
        if isinstance(obj, functools.cached_property):  # Python 3.11's holds a lock
            return functools.cached_property, (obj.func,), {"attrname": obj.attrname}
        if isinstance(obj, ModuleType) and _is_an_attribute_alone(obj):
            return _attribute, (obj.__name__,)
        return super().reducer_override(obj)


def _is_by_value(module: str) -> bool:
    return module == "__main__" or module in cloudpickle.list_registry_pickle_by_value()


def _empty_cache(parameters: dict[str, Any]) -> Callable:
    def call(*args: Any, **options: Any) -> Any:
        return call.function(*args, **options)  # type: ignore[attr-defined]

    return functools.lru_cache(**parameters)(call)


def _fill(cached: Any, function: Callable) -> None:
    """Give a cache its function, which may call the cache by a global name."""
    cached.__wrapped__.function = function
    functools.update_wrapper(cached, function)


def _is_an_attribute_alone(module: ModuleType) -> bool:
    """Whether a module is found in its package, and not by an import of its name: such as torch._C._functions."""
    if module.__name__ in sys.modules or "." not in module.__name__:
        return False
    try:
        return _attribute(module.__name__) is module
    except (ImportError, AttributeError):
        return False


def _attribute(name: str) -> ModuleType:
    package, _, last = name.rpartition(".")
    return getattr(importlib.import_module(package), last)
