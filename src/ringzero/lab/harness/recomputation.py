"""A chain of blocks with and without recomputation: what comes out, the gradients, and the bytes that are held."""

from collections.abc import Callable
from typing import Any

import torch

from ringzero.record.memory import MemoryTimeline


def with_and_without(block: Callable, checkpointed: Callable, *shape: Any, recomputation: str) -> dict:
    """The measurements of a chain without recomputation, "plain", and with the student's, "yours".

    ``block(hidden, heads, dropout=, recomputation=, checkpoint=)`` makes a layer. ``shape`` is layers, batch, sequence,
    hidden, heads, dropout.
    """

    def refuse(*_):
        raise RuntimeError("torch's own checkpoint is not to be used here; write it with torch.autograd.Function")

    torch.utils.checkpoint.CheckpointFunction.apply = refuse  # type: ignore[method-assign]
    return {
        "plain": _measured(block, checkpointed, shape, "none"),
        "yours": _measured(block, checkpointed, shape, recomputation),
    }


def _measured(block, checkpointed, shape, recomputation):
    layers, batch, sequence, hidden, heads, dropout = shape
    torch.set_num_threads(1)
    torch.manual_seed(layers)
    runs = []  # of each run of a function: whether it recorded a graph

    def counting(function, *inputs):
        def counted(*again):
            runs.append(torch.is_grad_enabled())
            return function(*again)

        return checkpointed(counted, *inputs)

    options = {"dropout": dropout, "recomputation": recomputation, "checkpoint": counting}
    blocks = torch.nn.Sequential(*[block(hidden, heads, **options) for _ in range(layers)])
    x = torch.randn(batch, sequence, hidden, requires_grad=True)
    with MemoryTimeline(blocks) as memory:
        y = blocks(x)
        memory.mark("forward")
        y.sin().sum().backward()
    forward = memory.at("forward")
    gradients = [torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in blocks.parameters()]
    return {
        "output": y.detach(),
        "input's gradient": x.grad,
        "parameters' gradients": torch.cat(gradients),
        "random numbers that follow": torch.rand(4),
        "held": forward.total - forward["parameters"] - y.nbytes,
        "peak": memory.peak().total,
        "runs": runs,
        "mask": 1 if x.is_cuda else 4,  # bytes of an element of a dropout mask
    }
