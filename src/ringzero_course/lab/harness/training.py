"""A model for checks that forgives less than a plain MLP, and batches.

The model notes when the backward pass comes to each of its layers. With the ranks' records of what they sent, the
order of events then proves what overlapped with what, and the student's code has no part in the proof.
"""

import time
from collections.abc import Callable

import torch
from torch import nn

INPUTS, OUTPUTS, SAMPLES = 6, 3, 8  # samples a rank and batch


class Mark(torch.autograd.Function):
    """The identity; when the backward pass reaches it, it notes the time in ``times[key]``."""

    @staticmethod
    def forward(ctx, x, times, key):
        ctx.times, ctx.key = times, key
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        ctx.times[ctx.key] = time.time()
        return gradient, None, None


class Two(nn.Module):
    """Two matrices with a tanh between them. That which is used last is registered first."""

    def __init__(self, first):
        super().__init__()
        self.last, self.first = nn.Linear(first.out_features, first.out_features), first

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)))


class Model(nn.Module):
    """Linear layers from 6 inputs over the widths ``hidden`` to 3 outputs, and three buffers of different kinds.

    ``seed``     of parameters and buffers; they are made on the CPU, so the same on every device
    ``frozen``   numbers of layers that are not trained
    ``tied``     two layers that have one weight between them
    ``double``   layers of two matrices
    ``skipped``  layers that are not used: on no rank, or on odd ranks only with ``skipped_on_odd``
    ``buffer_in`` layers that have one more buffer, which they share
    ``gain``     whether there is one more parameter, a single number in no layer

    ``begun[i]`` is when the last backward pass came to layer i, ``seen`` all samples of the forward passes.
    """

    def __init__(
        self, seed, hidden=(11, 5, 13), double=(), frozen=(), tied=(), skipped=(), skipped_on_odd=(),
        buffer_in=(), gain=False,
    ):  # fmt: skip
        super().__init__()
        torch.manual_seed(seed)
        widths = [INPUTS, *hidden, OUTPUTS]
        with torch.device("cpu"):
            self.layers = nn.ModuleList(nn.Linear(n, m) for n, m in zip(widths, widths[1:], strict=False))
            self.register_buffer("scale", 1 + torch.rand(OUTPUTS))
            self.register_buffer("shift", torch.rand(OUTPUTS), persistent=False)
            self.register_buffer("count", torch.randint(1000, ()))
            for i in double:
                self.layers[i] = Two(self.layers[i])
            seen = torch.rand(4)
            for i in buffer_in:
                self.layers[i].register_buffer("seen", seen)
        if tied:
            one, other = tied
            self.layers[other].weight = self.layers[one].weight
        for i in frozen:
            self.layers[i].requires_grad_(False)
        self.gain = nn.Parameter(torch.rand((), device="cpu")) if gain else 1.0
        self.skipped, self.skipped_on_odd = skipped, skipped_on_odd
        self.begun, self.seen = {}, []
        self.to(torch.get_default_device())

    def forward(self, x, rank=0):
        self.seen.append(x.detach())
        for i, layer in enumerate(self.layers):
            if i not in self.skipped and not (rank % 2 and i in self.skipped_on_odd):
                x = torch.tanh(Mark.apply(layer(x), self.begun, i))
        return self.gain * x * self.scale + self.shift

    def trained(self):
        return {name: p for name, p in self.named_parameters() if p.requires_grad}

    def frozen(self):
        return {name: p for name, p in self.named_parameters() if not p.requires_grad}


def batch(number: int, samples: int = 24) -> tuple[torch.Tensor, torch.Tensor]:
    """A whole batch, the same on every rank: ``(x, y)`` of shapes (samples, 6) and (samples, 3)."""
    source = torch.Generator("cpu").manual_seed(number)
    device = torch.get_default_device()
    with torch.device("cpu"):
        x, y = torch.randn(samples, INPUTS, generator=source), torch.randn(samples, OUTPUTS, generator=source)
    return x.to(device), y.to(device)


def loss_of(forward: Callable, number: int, rank: int, ranks: int) -> torch.Tensor:
    """The mean squared error over a rank's part of batch ``number``; all ranks' parts have one size."""
    x, y = batch(number, SAMPLES * ranks)
    return (forward(x[rank::ranks], rank) - y[rank::ranks]).square().mean()


def end_to_end(tensors: list[torch.Tensor]) -> torch.Tensor:
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def numbers(shape: tuple, seed: int) -> torch.Tensor:
    """Random numbers, the same in every process, on the CPU."""
    return torch.randn(shape, generator=torch.Generator("cpu").manual_seed(seed), device="cpu")
