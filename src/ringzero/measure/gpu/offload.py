"""A step whose optimizer states are on the host (``ringzero.zero.Host``), beside what its copies and its AdamW take."""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ringzero.measure.gpu.alone import one_rank
from ringzero.measure.gpu.clocks import synchronize
from ringzero.measure.gpu.copies import host_memory, timed
from ringzero.zero import Host, ZeroStage2

WIDTH, LAYERS, TOKENS = 2048, 12, 1024
PRECISIONS = {"fp32": None, "bf16": torch.bfloat16}


def rows(
    device: str, width: int = WIDTH, layers: int = LAYERS, tokens: int = TOKENS, tries: int = 7
) -> Iterator[dict[str, Any]]:
    """A row for each precision, medians in seconds.

    ``step_seconds`` is the update with the states on the host, layer by layer: the CPU's AdamW, and copies back.
    ``predicted_seconds`` is the longer of both and one layer's share of the other, from ``adam_seconds``, the same
    AdamW alone, and ``copies_seconds``, the bytes over the rate of pinned copies. ``pass_seconds`` are of a forward and
    backward pass, in which gradients go to the host. Names with "on_device" have the states on the device.
    """
    with one_rank(device):
        for name, precision in PRECISIONS.items():
            on_host = update(Host(), precision, device, width, layers, tokens, tries)
            on_device = update(None, precision, device, width, layers, tokens, tries)
            elements = width * width
            nbytes = elements * (precision or torch.float32).itemsize
            _, copy = timed(host_memory(nbytes, device == "cuda"), _like(nbytes, device), True, device)
            adam, copies = adam_alone(elements, layers, tries), copy * layers
            yield {
                "precision": name,
                "parameters": elements * layers,
                "layers": layers,
                "copied_bytes": nbytes * layers,
                "copies_seconds": copies,
                "adam_seconds": adam,
                "predicted_seconds": max(copies, adam) + min(copies, adam) / layers,
                "step_seconds": on_host["step"],
                "step_on_device_seconds": on_device["step"],
                "pass_seconds": on_host["pass"],
                "pass_on_device_seconds": on_device["pass"],
            }


def update(
    home: Host | None, precision: torch.dtype | None, device: str, width: int, layers: int, tokens: int, tries: int
) -> dict[str, float]:
    """Median seconds of a "pass", forward and backward, and of a "step"."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(layers))).to(device)
    units = list(module)
    model = ZeroStage2(
        module, torch.optim.AdamW, lr=1e-4, fused=True, units=units, home=home, mixed_precision=precision
    )
    batch = torch.randn(tokens, width, device=device).to(precision or torch.float32)
    taken: dict[str, list[float]] = {"pass": [], "step": []}
    acts = {"pass": lambda: model(batch).square().mean().backward(), "step": model.step}
    for turn in range(-2, tries):
        for name, act in acts.items():
            took = _seconds(act, device)
            if turn >= 0:
                taken[name].append(took)
        model.zero_grad()
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def adam_alone(elements: int, layers: int, tries: int) -> float:
    """Median seconds of AdamW on the CPU, of so many layers with so many elements each, in fp32."""
    parameters = [torch.nn.Parameter(torch.randn(elements)) for _ in range(layers)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)
    return statistics.median([_seconds(optimizer.step, "cpu") for _ in range(2 + tries)][2:])


def _like(nbytes: int, device: str) -> torch.Tensor:
    return torch.zeros(nbytes, dtype=torch.uint8, device=device)


def _seconds(act: Callable[[], object], device: str) -> float:
    synchronize(device)
    start = time.perf_counter()
    act()
    synchronize(device)
    return time.perf_counter() - start
