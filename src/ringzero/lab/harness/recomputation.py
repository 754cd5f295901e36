"""A chain of blocks with and without recomputation: what comes out, the gradients, and the bytes that are held."""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import torch

from ringzero.lab.harness import returned
from ringzero.lab.unaided import unaided
from ringzero.record.memory import MemoryTimeline


def with_and_without(block: Callable, checkpointed: Callable, *shape: Any, recomputation: str, calls: int = 1) -> dict:
    """The measurements of a chain without recomputation, "plain", and with the student's, "yours".

    ``block(hidden, heads, dropout=, recomputation=, checkpoint=)`` makes a layer. ``shape`` is layers, batch, sequence,
    hidden, heads, dropout. The chain is called ``calls`` times; then each call has its backward pass, the first first.
    """
    with unaided("torch.utils.checkpoint"):
        return {
            "plain": _measured(block, checkpointed, shape, "none", calls),
            "yours": _measured(block, checkpointed, shape, recomputation, calls),
        }


def _measured(block, checkpointed, shape, recomputation, calls):
    layers, batch, sequence, hidden, heads, dropout = shape
    torch.set_num_threads(1)
    torch.manual_seed(layers)
    runs = []  # of each run of a function: whether it recorded a graph

    @cache  # one for all calls of a layer, as the layer is one
    def counted(function):
        @wraps(function)
        def counting(*inputs):
            runs.append(torch.is_grad_enabled())
            return function(*inputs)

        return counting

    def counting(function, *inputs):
        return returned.must_be_a_tensor("checkpointed", checkpointed(counted(function), *inputs))

    options = {"dropout": dropout, "recomputation": recomputation, "checkpoint": counting}
    blocks = torch.nn.Sequential(*[block(hidden, heads, **options) for _ in range(layers)])
    inputs = [torch.randn(batch, sequence, hidden, requires_grad=True) for _ in range(calls)]
    with MemoryTimeline(blocks) as memory:
        losses, outputs = [], []
        for x in inputs:
            y = blocks(x)
            losses.append(y.sin().sum())
            outputs.append(y.detach())
            del y
        memory.mark("forward")
        while losses:
            _backward(losses.pop(0))
        memory.mark("backward")
    forward = memory.at("forward")
    gradients = [torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in blocks.parameters()]
    return {
        "output": torch.cat(outputs),
        "gradient of the input": None if any(x.grad is None for x in inputs) else torch.cat([x.grad for x in inputs]),
        "gradient of the parameters": torch.cat(gradients),
        "random numbers that follow": torch.rand(4),
        "held": forward.total - forward["parameters"] - calls * outputs[0].nbytes,
        "left": memory.at("backward").total,
        "peak": memory.peak().total,
        "runs": runs,
        "mask": 1 if inputs[0].is_cuda else 4,  # bytes of an element of a dropout mask
    }


def _backward(loss):
    try:
        loss.backward()
    except RuntimeError as error:
        if "a second time" not in str(error):
            raise
        why = "the second run is still part of the graph of the first: take every input out of it with detach()"
        raise RuntimeError(why) from error
