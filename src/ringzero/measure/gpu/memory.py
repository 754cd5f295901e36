"""Bytes of model states by formula, counted from the tensors, and by CUDA's allocator; and the peak of a step.

The allocator keeps two accounts: bytes that were asked for, and bytes of the blocks that it gave, multiples of 512.
"""

import gc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from ringzero.costs.page import memory as costs
from ringzero.measure.gpu.alone import one_rank
from ringzero.record.memory import MemoryTimeline
from ringzero.zero import STAGES, resident

WIDTH, LAYERS, ROWS = 2048, 8, 16


def rows(device: str, width: int = WIDTH, layers: int = LAYERS) -> Iterator[dict[str, Any]]:
    """States of AdamW and of ZeRO on one rank, in fp32 and in mixed precision; then a whole step's peak.

    ``predicted_bytes`` are the formula's, ``counted_bytes`` the tensors'. ``requested_bytes`` and ``allocated_bytes``
    are what the allocator was asked for and what it gave, None where there is no GPU.
    """
    parameters = width * width * layers
    with one_rank(device):
        held(partial(by_adamw, width, layers, device), device)  # cuBLAS takes its workspaces, NCCL its own
        each = costs.bytes_per_param("adamw", mixed_precision=False)
        counts = costs.torch_optimizer_bytes(parameters, layers, "adamw") - each[2] * parameters
        states = costs.model_state_bytes(parameters, each=each)
        yield _row("AdamW", "fp32", int(states + counts), held(partial(by_adamw, width, layers, device), device))
        for stage in STAGES:
            for precision, dtype in (("fp32", None), ("bf16 and fp32", torch.bfloat16)):
                each = costs.bytes_per_param("adamw", mixed_precision=dtype is not None)
                predicted = int(costs.model_state_bytes(parameters, stage, 1, each) + counts)
                found = held(partial(by_zero, stage, dtype, width, layers, device), device)
                yield _row(f"ZeRO-{stage}", precision, predicted, found)
    counted, allocated = peaks(device, width, layers)
    yield _row("peak of a step", "fp32", None, (counted, None, allocated))


def _row(what: str, precision: str, predicted: int | None, found: tuple[int, int | None, int | None]) -> dict[str, Any]:
    names = ("predicted_bytes", "counted_bytes", "requested_bytes", "allocated_bytes")
    return {"what": what, "precision": precision} | dict(zip(names, (predicted, *found), strict=True))


def held(train: Callable[[], tuple[object, int]], device: str) -> tuple[int, int | None, int | None]:
    """Bytes of what ``train()`` makes and returns, with their number as its tensors say: (counted, requested,
    allocated). The two are the allocator's, beyond what there was before; None where there is no GPU."""
    before = allocator(device)
    kept, counted = train()
    after = allocator(device)
    del kept
    requested, allocated = (None if a is None or b is None else b - a for a, b in zip(before, after, strict=True))
    return counted, requested, allocated


def allocator(device: str) -> tuple[int | None, int | None]:
    """Bytes that are asked for and allocated at this moment."""
    gc.collect()
    if device != "cuda":
        return None, None
    torch.cuda.synchronize()
    return torch.cuda.memory_stats().get("requested_bytes.all.current"), torch.cuda.memory_allocated()


def by_adamw(width: int, layers: int, device: str) -> tuple[object, int]:
    """Model and optimizer after two steps of torch's AdamW, and the bytes of parameters, gradients and states."""
    model = stack(width, layers, device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)  # which has its step counts on the device, too
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(ROWS, width, device=device)).square().mean().backward()
        optimizer.step()
    weights = list(model.parameters())
    states = [value for of_one in optimizer.state.values() for value in of_one.values()]
    counted = sum(weight.nbytes for weight in weights) + sum(value.nbytes for value in states)
    return (model, optimizer), counted + sum(weight.grad.nbytes for weight in weights if weight.grad is not None)


def by_zero(stage: int, precision: torch.dtype | None, width: int, layers: int, device: str) -> tuple[object, int]:
    """The model after two steps, with the gradient of the second, and its bytes on the device."""
    module = stack(width, layers, device)
    options = {"units": list(module)} if stage == 3 else {"bucket_cap_mb": 2 * width * width / 2**20}
    model = STAGES[stage](module, torch.optim.AdamW, fused=True, mixed_precision=precision, **options)
    for _ in range(2):
        model.zero_grad()
        batch = torch.randn(ROWS, width, device=device).to(precision or torch.float32)
        model(batch).square().mean().backward()
        model.step()
    counts = sum(
        value.nbytes for of_one in model.optimizer.state.values() for value in of_one.values() if not value.dim()
    )
    return model, resident(model)["device"] + counts


def peaks(device: str, width: int, layers: int) -> tuple[int, int | None]:
    """The peak of a step as ``MemoryTimeline`` counts it, and as the allocator does."""
    model = stack(width, layers, device)
    optimizer = torch.optim.AdamW(model.parameters())
    batch = torch.randn(64 * ROWS, width, device=device)
    for _ in range(2):  # cuBLAS takes its workspaces, AdamW makes its states
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    _, before = allocator(device)
    if before is not None:
        torch.cuda.reset_peak_memory_stats()
    with MemoryTimeline(model, optimizer) as memory:
        at_first = memory.history().totals[-1] + batch.nbytes  # the timeline sees the batch when it is used
        model(batch).sum().backward()
        optimizer.step()
    if before is None:
        return memory.peak().total, None
    torch.cuda.synchronize()
    return memory.peak().total, torch.cuda.max_memory_allocated() - before + at_first


def stack(width: int, layers: int, device: str) -> torch.nn.Sequential:
    """So many square layers without biases."""
    made = [torch.nn.Linear(width, width, bias=False, device=device) for _ in range(layers)]
    return torch.nn.Sequential(*made)
