"""What a student's object leads to: its attributes, its class, and globals, closures and defaults of its methods."""

from collections import deque
from collections.abc import Iterator
from inspect import getclosurevars
from types import FunctionType, ModuleType
from typing import Any

import torch

HOLDERS = (list, tuple, set, deque)


def uncounted(*things: Any) -> int:
    """Bytes in NumPy arrays, bytes and lists of numbers to which ``things`` lead: no count of tensors has them."""
    return sum(map(_size_of, _all_from(things)))


def tensors(*things: Any) -> list[torch.Tensor]:
    """The tensors to which ``things`` lead."""
    return [thing for thing in _all_from(things) if isinstance(thing, torch.Tensor)]


def _all_from(things):
    """All objects that can be reached, each once. Nothing of a library's code is."""
    seen: dict[int, Any] = {}  # the objects are held, so that no other gets the same id
    todo = list(things)
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, (ModuleType, str, int, float)):
            continue
        seen[id(thing)] = thing
        todo += _next(thing)
    return list(seen.values())


def _next(thing: Any) -> Iterator[Any]:
    if isinstance(thing, dict):
        yield from thing.values()
    elif isinstance(thing, HOLDERS):
        yield from thing
    elif isinstance(thing, FunctionType):
        if thing.__module__ == "__main__":  # a student's
            inside = getclosurevars(thing)
            yield from (inside.globals, inside.nonlocals, thing.__defaults__, thing.__kwdefaults__, vars(thing))
    elif isinstance(thing, type):
        if thing.__module__ == "__main__":
            yield from vars(thing).values()
    elif hasattr(thing, "__dict__"):
        yield vars(thing)
        yield type(thing)


def _size_of(thing):
    if isinstance(thing, (bytes, bytearray)) or type(thing).__module__ in ("numpy", "array"):
        return memoryview(thing).nbytes
    inside = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, HOLDERS) else ()
    return 8 * sum(isinstance(each, (int, float)) for each in inside)
