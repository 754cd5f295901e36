"""A forward and a backward pass through layers whose parameters are in host memory (``Tiers``): what came when.

Layer i multiplies by a matrix and takes the tanh. The matrices have different sizes, so that a copy is known by its
size.
"""

from collections.abc import Callable
from typing import Any

import torch

from ringzero.lab.harness.sharded import numbers
from ringzero.lab.refused import refused
from ringzero.lab.tiers import Tiers

WIDTHS = (24, 30, 28, 31, 27, 32, 29, 26)
BYTES_PER_SECOND = 4000.0  # 1,000 numbers of fp32
FORWARDS_PER_SECOND, BACKWARDS_PER_SECOND = 800.0, 400.0  # parameters


def sizes_of(widths: tuple) -> list[int]:
    """How many parameters each layer has."""
    return [rows * columns for rows, columns in zip(widths, widths[1:], strict=False)]


def vectors_of(seed: int, widths: tuple) -> list[torch.Tensor]:
    """The layers' parameters, each a 1-D tensor, on the CPU."""
    shapes = zip(widths, widths[1:], strict=False)
    return [numbers((m * n,), 100 * seed + i) / m**0.5 for i, (m, n) in enumerate(shapes)]


def ends_of(seed: int, widths: tuple) -> tuple[torch.Tensor, torch.Tensor]:
    """The first layer's input, and the gradient of the last one's output."""
    return numbers((2, widths[0]), 100 * seed + 80), numbers((2, widths[-1]), 100 * seed + 81)


def output_of(vector: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """What a layer makes of ``x``."""
    return torch.tanh(x @ vector.view(x.shape[-1], -1))


def gradients_of(vector: torch.Tensor, x: torch.Tensor, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of a layer's input and of its vector, where that of its output is ``gradient``."""
    matrix = vector.view(x.shape[-1], -1)
    inner = gradient * (1 - torch.tanh(x @ matrix).square())
    return inner @ matrix.T, (x.T @ inner).reshape(-1)


def through(
    forward: Callable, backward: Callable, *, seed: int, k: int, widths: tuple = WIDTHS, back: bool = False
) -> dict:
    """A forward pass through a window of ``k`` layers and, with ``back``, a backward pass.

    For each pass is reported what it returned, its ``events``, how many layers the link brought to the device were
    there at most and are ``left``, and how many bytes more than before it the device held at most. ``kept`` says
    whether the vectors in host memory are what they were.
    """
    from ringzero.costs import offload

    with refused(*vars(offload).values()), Tiers(BYTES_PER_SECOND) as tiers:
        sizes, vectors = sizes_of(widths), vectors_of(seed, widths)
        x, last = (tiers.on_device(end) for end in ends_of(seed, widths))

        def compute(i, vector, x):
            _check(i, vector, x, sizes[i], tiers)
            tiers.compute("forward", sizes[i], sizes[i] / FORWARDS_PER_SECOND)
            return output_of(vector, x)

        def differentiate(i, vector, x, gradient):
            _check(i, vector, x, sizes[i], tiers)
            tiers.compute("backward", sizes[i], sizes[i] / BACKWARDS_PER_SECOND)
            return gradients_of(vector, x, gradient)

        report: dict[str, Any] = {}
        with _Noted(tiers, report, "forward"):
            output, inputs = forward(vectors, x, k, tiers.link, compute)
        report["output"], report["inputs"] = output.tolist(), [each.tolist() for each in inputs]
        if back:
            with _Noted(tiers, report, "backward"):
                gradient, gradients = backward(vectors, inputs, last, k, tiers.link, differentiate)
            report["where"] = [tiers.tier_of(each) for each in gradients]
            report["gradient"], report["gradients"] = gradient.tolist(), [each.tolist() for each in gradients]
        report["kept"] = all(map(torch.equal, vectors, vectors_of(seed, widths)))
    return report


class _Noted:
    """Notes in ``report[name]`` what happened inside."""

    def __init__(self, tiers: Tiers, report: dict, name: str):
        self.tiers, self.report, self.name = tiers, report, name

    def __enter__(self) -> None:
        self.tiers.start_peaks()
        self.held, self.first, self.began = self.tiers.held["device"], len(self.tiers.events), self.tiers.now

    def __exit__(self, *error: Any) -> None:
        tiers = self.tiers
        self.report[self.name] = {
            "events": [list(event) for event in tiers.events[self.first :]],
            "most": tiers.most_arrived,
            "left": tiers.arrived,
            "more": tiers.peak["device"] - self.held,
            "began": self.began,
            "seconds": tiers.now - self.began,
        }


def _check(i, vector, x, size, tiers):
    if vector.numel() != size:
        raise RuntimeError(f"layer {i} was given {vector.numel()} parameters and has {size}")
    if tiers.tier_of(vector) != "device" or tiers.tier_of(x) != "device":
        raise RuntimeError(f"layer {i} computes on the device and was given a tensor in host memory")


def alone(seed: int, widths: tuple) -> dict:
    """The same in one memory."""
    vectors, (x, gradient) = vectors_of(seed, widths), ends_of(seed, widths)
    inputs: list[torch.Tensor] = []
    for vector in vectors:
        inputs.append(x)
        x = output_of(vector, x)
    gradients = []
    for vector, before in zip(reversed(vectors), reversed(inputs), strict=True):
        gradient, of_vector = gradients_of(vector, before, gradient)
        gradients.append(of_vector)
    return {"output": x, "inputs": inputs, "gradient": gradient, "gradients": gradients[::-1]}
