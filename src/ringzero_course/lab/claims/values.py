"""Comparisons of what came back with what is right: None, or a sentence that says where they differ.

``got[i]`` is what rank ``first_rank + i`` brought. Inputs of the labs are whole numbers whose sums have one exact
result, so ``equal`` compares exactly.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch


def equal(
    what: str, got: list, expected: list, first_rank: int = 0, cause: Callable[[int, int, float], str] | None = None
) -> str | None:
    """Why ``got[r]`` is not the tensor ``expected[r]`` on some rank r, or None. ``what`` names it in the sentence.

    ``cause(r, i, value)`` may end it with how element ``i`` of rank r came to this value.
    """
    for rank, (mine, right) in enumerate(zip(got, expected, strict=True), first_rank):
        where = f"on rank {rank} {what}"
        if (why := _misshapen(where, mine, right)) is not None:
            return why + (": does it return nothing?" if mine is None else "")
        wrong = (mine.to(right.dtype) != right).nonzero().flatten().tolist()
        if wrong:
            i = wrong[0]
            got_there, right_there = mine[i].item(), right[i].item()
            shown = apart(got_there, right_there)
            why = cause(rank, i, got_there) if cause else ""
            return f"{where} is wrong in {_count(wrong, right.numel())}: [{i}] is {shown[0]}, expected {shown[1]}{why}"
    return None


def apart(one: float, other: float) -> tuple[str, str]:
    """Two different numbers as short texts that differ."""
    short = f"{one:g}", f"{other:g}"
    return short if short[0] != short[1] else (repr(one), repr(other))


def _misshapen(where, got, expected):
    if not isinstance(got, torch.Tensor):
        return f"{where} is {in_short(got)}, not a tensor"
    if tuple(got.shape) != tuple(expected.shape):
        return f"{where} has shape {tuple(got.shape)}, expected {tuple(expected.shape)}"
    return None


def in_short(value: object) -> str:
    """A value in a few words."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    text = " ".join(repr(value).split())
    if len(text) > 60 and isinstance(value, (list, tuple)):
        things = "tensors" if isinstance(value[0], torch.Tensor) else "values"
        return f"a {type(value).__name__} of {len(value)} {things}"
    return text if len(text) <= 60 else text[:59] + "…"


def _count(wrong, numel):
    first, last = wrong[0], wrong[-1]
    if len(wrong) == numel:
        return "every element"
    if len(wrong) == 1:
        return f"element {first} of {numel}"
    return f"{len(wrong)} of {numel} elements, from {first} to {last}"


FP32 = 1e-6  # relative: so near is a right value where some of its factors are fp32, which is torch's default
UNWRITTEN = 1e6  # times the largest right value: no mistake in a formula is that far off


def close(what: str, got: list, expected: list, tolerance: float = 1e-4) -> str | None:
    """Why ``got[r]`` is ``far_off`` from the tensor ``expected[r]`` on some rank r, or None."""
    for rank, (mine, right) in enumerate(zip(got, expected, strict=True)):
        if (why := far_off(f"on rank {rank} {what}", mine, right, tolerance)) is not None:
            return why + (": does it return nothing?" if mine is None else "")
    return None


def far_off(what: str, got: Any, right: torch.Tensor, tolerance: float = 1e-4) -> str | None:
    """Why ``got`` is off from ``right`` by more than ``tolerance`` times its largest element, or None.

    ``what`` names it in the sentence, which also says if it is a multiple of the right one.
    """
    if (why := _misshapen(what, got, right)) is not None:
        return why
    got, largest = got.to(right.dtype), right.abs().max().item()
    off, due = (got - right).abs().max().item(), f"its largest element should be {largest:.3g}"
    if off <= tolerance * largest:
        return None
    if math.isnan(off):
        return f"{what} has NaN in it, as 0 / 0 gives; {due}"
    if right.numel() == 1:
        return number(what, got, right.item(), tolerance)
    if not got.abs().max():
        return f"{what} is all zeros; {due}"
    factor = (got * right).sum().item() / (right.square().sum().item() or 1.0)
    if abs(factor) > tolerance and (got - factor * right).abs().max().item() <= tolerance * abs(factor) * largest:
        return f"{what} is {factor:.4g} times what it should be"
    if off > UNWRITTEN * max(largest, 1.0):
        return f"{what} has values like {off:.3g}, as in memory that was never written; {due}"
    return f"{what} is off by up to {off:.3g}; {due}"


def same(what: str, got: list) -> str | None:
    """Why the tensors ``got[r]`` are not alike on all ranks, to the last bit, or None."""
    for rank, mine in enumerate(got):
        if (why := _misshapen(f"on rank {rank} {what}", mine, got[0])) is not None:
            return why
        if not torch.equal(mine, got[0]):
            off = (mine - got[0]).abs().max().item()
            return f"on rank {rank} {what} is not what it is on rank 0: they differ by up to {off:.3g}"
    return None


def one_value(got: Any) -> Any:
    """What is in ``got``, if that is a tensor or a NumPy array of one number; else ``got``."""
    return got.item() if hasattr(got, "item") and hasattr(got, "shape") and math.prod(got.shape) == 1 else got


def number(what: str, got: object, expected: float, tolerance: float = FP32) -> str | None:
    """Why the number ``got`` is not ``expected`` within the relative ``tolerance``, or None."""
    got = one_value(got)
    if isinstance(got, bool) or not isinstance(got, (int, float)):
        return f"{what} is {got!r}, not a number"
    if not abs(got - expected) <= tolerance * abs(expected):
        mine, right = apart(got, expected)
        return f"{what} is {mine}, expected {right}{_ratio(what, got, expected) if expected else ''}"
    return None


UNITS = {1e-9: "GB, not bytes", 2.0**-30: "GiB, not bytes", 1e-6: "MB, not bytes"}
UNITS_OF = {  # by how a name ends
    "bw": {8.0: "Gbit/s, not GB/s", 1e9: "bytes a second, not GB/s", 1e9 / 2**30: "GiB/s, not GB/s"},
    "time": {1e3: "milliseconds, not seconds"},
}


def _ratio(what, got, expected):
    """How ``got`` compares with ``expected``, for the end of a sentence; a wrong unit is named."""
    factor = got / expected
    if f"{factor:.3g}" == "1":
        return f" (off by {abs(factor - 1):.1g} of it)"
    units = next((more for end, more in UNITS_OF.items() if what.endswith(end)), {}) | UNITS
    unit = next((f": {said}?" for unit, said in units.items() if abs(factor / unit - 1) < 1e-3), "")
    return f" ({factor:.3g} times it{unit})"


def numbers(names: tuple[str, ...], got: object, expected: Sequence[float], tolerance: float = FP32) -> str | None:
    """Why ``got`` is not a pair (or more) of the numbers ``expected``, named one by one by ``names``; or None."""
    if hasattr(got, "tolist"):  # a tensor or an array
        got = got.tolist()
    if not isinstance(got, (tuple, list)) or len(got) != len(names):
        return f"returned {got!r}, not ({', '.join(names)})"
    return next((why for each in zip(names, got, expected, strict=True) if (why := number(*each, tolerance))), None)
