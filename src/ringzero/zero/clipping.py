"""What is done to the gradients between a backward pass and a step: each rank has a shard of them."""

from collections.abc import Callable
from math import inf
from typing import Any

import torch
import torch.distributed as dist


@torch.no_grad()
def clip_grad_norm_(
    model: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> torch.Tensor:
    """Scale the gradients so that their norm over all ranks is ``max_norm`` at most. Returns the norm it was.

    Arguments are those of ``torch.nn.utils.clip_grad_norm_``: ``norm_type`` is positive or ``inf``; a norm that is
    not finite is a RuntimeError, on every rank, with ``error_if_nonfinite``.
    """
    if not norm_type > 0:
        raise ValueError(f"norm_type is {norm_type!r}; give a positive number, or inf")
    model.heed_program(step=True)
    model.announce("clip_grad_norm_", float(max_norm), norm_type, error_if_nonfinite)
    largest, device = norm_type == inf, model.vectors()[0].whole.device
    norms = [
        torch.linalg.vector_norm(shard, norm_type, dtype=torch.complex128 if shard.is_complex() else torch.float64)
        for shard in _shards(model)
        if shard.numel()
    ]
    each = torch.stack(norms).to(device) if norms else torch.zeros(1, dtype=torch.float64, device=device)
    total = each.max() if largest else each.pow(norm_type).sum()
    dist.all_reduce(total, op=dist.ReduceOp.MAX if largest else dist.ReduceOp.SUM, group=model.shard_group)
    norm = total if largest else total.pow(1 / norm_type)
    if error_if_nonfinite and not norm.isfinite():
        raise RuntimeError(f"the norm of the gradients is {norm.item()}, so they cannot be clipped")
    factor = (max_norm / (norm + 1e-6)).clamp(max=1)
    _change(model, lambda shard: shard.mul_(factor.to(shard)))
    return norm


@torch.no_grad()
def clip_grad_value_(model: Any, clip_value: float) -> None:
    """Clamp each number of the gradients to ``-clip_value`` to ``clip_value``."""
    model.heed_program(step=True)
    model.announce("clip_grad_value_", float(clip_value))
    _change(model, lambda shard: shard.clamp_(-clip_value, clip_value))


@torch.no_grad()
def unscale_(model: Any, factor: float) -> bool:
    """Multiply the gradients by ``factor``. Returns whether all are finite, on all ranks."""
    model.heed_program(step=True)
    model.announce("unscale_", factor)
    model.is_unscaled = True
    _change(model, lambda shard: shard.mul_(factor))
    bad = torch.tensor(0.0, device=model.vectors()[0].whole.device)
    for shard in _shards(model):
        bad = bad.maximum((~shard.isfinite()).any().to(bad))
    dist.all_reduce(bad, op=dist.ReduceOp.MAX, group=model.group)
    return not bad


def _shards(model: Any) -> list[torch.Tensor]:
    """Of the gradients that are there, once they can be read."""
    model.home.wait()
    return [vector.reduced for vector in model.vectors() if vector.reduced is not None]


def _change(model: Any, change: Callable[[torch.Tensor], object]) -> None:
    model.home.wait()
    for vector in model.vectors():
        vector.change_gradient(change)
