"""What a replica holds, in words."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from torch.nn import Parameter


def holds(model: Any) -> dict[str, str]:
    """``{what: in words}`` of a replica, the lines of its ``summary``."""
    buffers, each = model.shared(model.module.named_buffers()), model._each_rank_s_own
    return {
        type(model).__name__: f"of a {type(model.module).__name__}, on rank {model.group.rank()} of "
        f"{model.group.size()}",
        "trained": _in_words(model.trained.values()),
        "frozen": _in_words(model._frozen),
        "unused": ", ".join(model._unused) or "none",
        "buffers": _in_words(buffers) + (f"; each rank has its own {', '.join(sorted(each))}" if each else ""),
        "whole": "parameters, gradients and optimizer states, on every rank",
        "buckets": _buckets_in_words(model._buckets()),
        "groups": f"{len(model._own_groups)} of its own: "
        + ", ".join(f"{own.group.size()} ranks on {own.group.name()}" for own in model._own_groups),
    }


def _in_words(tensors: Iterable[torch.Tensor]) -> str:
    """How many tensors and numbers of each type."""
    kinds: dict[torch.dtype, list[int]] = defaultdict(list)
    for tensor in tensors:
        kinds[tensor.dtype].append(tensor.numel())
    said = [
        f"{len(sizes)} tensor{'s' * (len(sizes) > 1)} with {sum(sizes):,} numbers of {str(kind).removeprefix('torch.')}"
        for kind, sizes in kinds.items()
    ]
    return "; ".join(said) or "none"


def _buckets_in_words(buckets: list[list[Parameter]]) -> str:
    sizes = [sum(parameter.nbytes for parameter in bucket) for bucket in buckets]
    each = ", ".join(f"{size:,}" for size in sizes[:8]) + ", ..." * (len(sizes) > 8)
    return f"{len(sizes)} of {each} bytes"
