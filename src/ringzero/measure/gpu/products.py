"""Matrix products by shape and type: FLOP a second, and the part of the card's dense peak."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ringzero.costs.page import hardware
from ringzero.measure.gpu.clocks import seconds_of

SHAPES = (  # (tokens, inputs, outputs)
    *((size, size, size) for size in (512, 1024, 2048, 4096, 8192)),
    *((tokens, 4096, 4096) for tokens in (1, 16, 128)),
    (8192, 1024, 4096),
)
TYPES = {  # name: (dtype, what float32 products may do)
    "fp32": (torch.float32, "highest"),
    "tf32": (torch.float32, "high"),
    "bf16": (torch.bfloat16, "highest"),
    "fp16": (torch.float16, "highest"),
}


def rows(device: str, shapes: Sequence[tuple[int, int, int]] = SHAPES) -> Iterator[dict[str, Any]]:
    """A row for each type and shape: ``seconds``, ``flops`` (FLOP a second), ``of_peak`` where the peak is known."""
    before = torch.get_float32_matmul_precision()
    try:
        for name, (dtype, precision) in TYPES.items():
            torch.set_float32_matmul_precision(precision)
            peak = peak_flops(name, device)
            for tokens, inputs, outputs in shapes:
                a = torch.randn(tokens, inputs, device=device).to(dtype)
                b = torch.randn(inputs, outputs, device=device).to(dtype)
                seconds = seconds_of(lambda a=a, b=b: a @ b, device)  # type: ignore[misc]
                flops = 2 * tokens * inputs * outputs / seconds
                yield {
                    "type": name,
                    "tokens": tokens,
                    "inputs": inputs,
                    "outputs": outputs,
                    "seconds": seconds,
                    "flops": flops,
                    "of_peak": flops / peak if peak else None,
                }
    finally:
        torch.set_float32_matmul_precision(before)


def peak_flops(name: str, device: str) -> float | None:
    """FLOP/s, dense, of a type on this card; None for a card not in the table, and for what has no row of its own.

    The table has one peak, of 16 bits on tensor cores. These know bf16 and TF32, at half that, from capability 8 on.
    """
    if device != "cuda" or name == "fp32":
        return None
    try:
        peak = hardware.peak_flops(torch.cuda.get_device_name())
    except ValueError:
        return None
    if name != "fp16" and torch.cuda.get_device_capability() < (8, 0):
        return None
    return peak / 2 if name == "tf32" else peak
