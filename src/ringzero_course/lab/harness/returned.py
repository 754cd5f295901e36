"""What a student's function returned, where a harness goes on with it: a tensor, or two."""

from typing import Any

import torch

from ringzero_course.lab.claims.values import in_short


def must_be_a_tensor(name: str, value: Any) -> torch.Tensor:
    """What the function of this name returned, itself. Raises TypeError, in words, for what is no tensor."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} returned {in_short(value)}, not a tensor")
    return value


def tensor(name: str, value: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A copy of what the function of this name returned. Raises TypeError, in words, where it is no such tensor."""
    if must_be_a_tensor(name, value).dtype != dtype and dtype:
        raise TypeError(f"{name} returned a tensor of {value.dtype}, expected {dtype}")
    return value.detach().clone()


def pair(name: str, names: str, value: Any) -> tuple[Any, Any]:
    """What the function of this name returned, two things, which ``names`` says in words: "(mean, mine)"."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(f"{name} returned {in_short(value)}, not {names}")
    return value[0], value[1]


def two_tensors(name: str, names: str, value: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """As ``tensor``, for a ``pair``."""
    one, other = pair(name, names, value)
    return tensor(name, one), tensor(name, other)
