"""Plain data as JSON that keeps tuples apart from lists, and the keys of dicts as they are."""

import json
from typing import Any


def dumps(value: Any) -> str:
    """The text of numbers, strings, None, lists, tuples and dicts of them. Raises TypeError for anything else."""
    return json.dumps(_packed(value))


def loads(text: str) -> Any:
    """The value of a text that ``dumps`` made. Raises ValueError, TypeError or LookupError for another text."""
    return _unpacked(json.loads(text))


def _packed(value: Any) -> Any:
    if isinstance(value, dict):
        return {"dict": [[_packed(key), _packed(item)] for key, item in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_packed(item) for item in value]}
    return [_packed(item) for item in value] if isinstance(value, list) else value


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        ((kind, items),) = value.items()
        made = [_unpacked(item) for item in items]
        return tuple(made) if kind == "tuple" else dict(made)
    return [_unpacked(item) for item in value] if isinstance(value, list) else value
