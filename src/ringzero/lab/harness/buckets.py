"""One bucket of gradients, filled and reduced; and how torch itself assigns parameters to buckets."""

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

SHAPES = {"bias": (5,), "weight": (5, 3), "scalar": (), "column": (4, 1)}


def gradient(rank: int, name: str, turn: int) -> torch.Tensor:
    """The gradient that ``rank`` has of a parameter in a turn, on the CPU."""
    source = torch.Generator("cpu").manual_seed(1000 * rank + 10 * len(name) + turn)
    return torch.randn(SHAPES[name], generator=source, device="cpu")


def fill_and_reduce(
    bucket_class: Callable,
    names: tuple,
    times: int = 1,
    without: tuple = (),
    beside: bool = False,
    to_none: bool = True,
    odd_ranks_forward: bool = False,
) -> dict:
    """On a rank: one bucket used so many times; the parameter ``without[rank]`` gets no gradient the last time.

    ``to_none``: a gradient that was put is a new tensor the next time; if not, it is written where the last one is.
    ``odd_ranks_forward``: odd ranks put the first parameter first, the others the last one first.
    ``beside``: another one, of ones, is on its way at the same time; it is full before, and leaves and ends after it.
    """
    rank, device = dist.get_rank(), torch.get_default_device()
    parameters = {name: torch.nn.Parameter(torch.zeros(SHAPES[name])) for name in names}
    bucket, none = bucket_class(list(parameters.values())), without[rank : rank + 1]
    counts, late, others_missing, flats = [len(bucket.missing)], [], [], []
    order = list(parameters.items())[:: 1 if odd_ranks_forward and rank % 2 else -1]
    others = [torch.nn.Parameter(torch.zeros(SHAPES[name])) for name in names if beside]
    other: Any = bucket_class(others) if beside else None
    for turn in range(times):
        for p in others:
            p.grad = torch.ones_like(p)
            other.put(p)
        for place, (name, p) in enumerate(order, 1):
            new = None if turn == times - 1 and name in none else gradient(rank, name, turn).to(device)
            p.grad = new if to_none or new is None or p.grad is None else p.grad.copy_(new)
            bucket.put(p)
            counts.append(len(bucket.missing))
            late += [] if _lies_in(bucket.flat, p.grad) else [name]
            others_missing += [] if {id(m) for m in bucket.missing} == {id(m) for _, m in order[place:]} else [name]
        bucket.launch()
        launched = time.time()
        if other is not None:
            other.launch()
        bucket.wait()
        if other is not None:
            other.wait()
        flats.append(bucket.flat)
    gradients = {name: p.grad for name, p in parameters.items() if p.grad is not None}
    return {
        "gradients": {name: kept.clone() for name, kept in gradients.items()},
        "views": [name for name, kept in gradients.items() if _lies_in(bucket.flat, kept)],
        "late": late,  # whose gradient was no view right after it was put
        "ones": all(p.grad is not None and bool(torch.eq(p.grad, 1).all()) for p in others),  # the other one's mean
        "flat": list(bucket.flat.shape),
        "same_flat": all(_lies_in(flat, bucket.flat) for flat in flats),  # each time in the same memory
        "launched": launched,  # the time when the last launch() returned
        "missing": [*counts, len(bucket.missing)],  # after each put, and after the last wait
        "others_missing": others_missing,  # after whose put other parameters were missing than those still to come
    }


def _lies_in(flat, tensor):
    return tensor is not None and tensor.untyped_storage().data_ptr() == flat.untyped_storage().data_ptr()


def plainly(assign: Callable, sizes: list[int], cap: int) -> dict:
    """What ``assign(sizes, cap)`` returns (``buckets``), and the ``sizes`` after that."""
    given = list(sizes)
    return {"buckets": assign(given, cap), "sizes": given}


def assignment(sizes: list[int], cap: int) -> list[list[int]]:
    """Torch's own assignment of parameters of these sizes in bytes to buckets of ``cap`` bytes, last one first."""
    tensors = [torch.empty(size, dtype=torch.uint8, device="cpu") for size in reversed(sizes)]
    found, _ = dist._compute_bucket_assignment_by_size(tensors, [cap], [False] * len(tensors))
    return [[len(sizes) - 1 - i for i in bucket] for bucket in found]
