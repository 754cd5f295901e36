"""A step whose optimizer states are on the host (``ringzero.zero.Host``), beside what its copies and its AdamW take."""

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ringzero.measure.gpu.alone import one_rank
from ringzero.measure.gpu.clocks import returned_and_done
from ringzero.measure.gpu.copies import host_memory, timed
from ringzero.zero import Host, ZeroStage2
from ringzero.zero.model import ZeroModel

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
            batch = torch.randn(tokens, width, device=device).to(precision or torch.float32)
            on_host, on_device = (
                medians(stack(ZeroStage2, device, width, layers, home=home, mixed_precision=precision), batch, tries)
                for home in (Host(), None)
            )
            nbytes = width * width * (precision or torch.float32).itemsize
            into = torch.zeros(nbytes, dtype=torch.uint8, device=device)
            _, copy = timed(host_memory(nbytes, device == "cuda"), into, True, device)
            alone = adam(width, layers)
            seconds = statistics.median([returned_and_done(alone.step, "cpu")[1] for _ in range(2 + tries)][2:])
            copies = copy * layers
            yield {
                "precision": name,
                "parameters": width * width * layers,
                "layers": layers,
                "copied_bytes": nbytes * layers,
                "copies_seconds": copies,
                "adam_seconds": seconds,
                "predicted_seconds": max(copies, seconds) + min(copies, seconds) / layers,
                "step_seconds": on_host["step"],
                "step_on_device_seconds": on_device["step"],
                "pass_seconds": on_host["pass"],
                "pass_on_device_seconds": on_device["pass"],
            }


def stack(stage: Callable[..., ZeroModel], device: str, width: int, layers: int, **options: Any) -> ZeroModel:
    """So many square layers in a ``stage`` of ZeRO, each a vector of its own, with a fused AdamW."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(layers))).to(device)
    return stage(module, torch.optim.AdamW, lr=1e-4, fused=True, units=list(module), **options)


def medians(
    model: ZeroModel, batch: torch.Tensor, tries: int, beside: Callable[[], object] | None = None
) -> dict[str, float]:
    """Median seconds of a "pass", forward and backward, of a "step", and of what runs in turns with them, "beside"."""
    acts = {"pass": lambda: model(batch).square().mean().backward(), "step": model.step}
    if beside is not None:
        acts["beside"] = beside
    taken: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(2 + tries):
        for name, act in acts.items():
            taken[name].append(returned_and_done(act, batch.device.type)[1])
        model.zero_grad()
    return {name: statistics.median(seconds[2:]) for name, seconds in taken.items()}


def adam(width: int, layers: int, **options: Any) -> torch.optim.AdamW:
    """AdamW on the CPU, fused unless ``options`` say otherwise, of so many square layers that have gradients, fp32."""
    parameters = [torch.nn.Parameter(torch.randn(width, width, device="cpu")) for _ in range(layers)]
    for parameter in parameters:
        parameter.grad = torch.randn_like(parameter)
    return torch.optim.AdamW(parameters, lr=1e-4, **(options or {"fused": True}))
