"""Training with masters, states and the step in the host's memory: values, bytes by tier, and the order of events.

The memories are those of ``Tiers``. The model is only a row of parameters, each of another size, so that a copy is
known by its size. The gradient of parameter i is made when the backward pass comes to it; the last one's is first.
"""

from collections.abc import Callable
from typing import Any

import torch

from ringzero.lab.harness.sharded import numbers
from ringzero.lab.refused import refused
from ringzero.lab.tiers import Tiers

SIZES = (140, 48, 192, 80, 252, 120, 96, 200)
ADAMW: dict[str, Any] = {"lr": 1e-2, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.01}
BYTES_PER_SECOND = 2000.0  # of the link, each way: 1,000 numbers of 16 bits
STEPS_PER_SECOND = 800.0  # parameters that the host's optimizer steps
BACKWARDS_PER_SECOND = 500.0  # parameters that the backward pass comes by


def plainly(function: Callable, *args: Any, **options: Any) -> Any:
    """``function`` of plain values, without the library's own."""
    from ringzero.costs import offload

    with refused(*vars(offload).values()):
        return function(*args, **options)


def types(sizes: tuple, fp32: tuple | None) -> list[torch.dtype]:
    """Of each parameter."""
    return [torch.float32 if fp32 is None or i in fp32 else torch.bfloat16 for i in range(len(sizes))]


def start_of(seed: int, i: int, size: int) -> torch.Tensor:
    """What parameter i begins with, in fp32."""
    return numbers((size,), 1000 * seed + i)


def gradient_of(seed: int, i: int, size: int, turn: int) -> torch.Tensor:
    """The gradient of parameter i in a backward pass, in fp32: whole 1024ths, so that sums in any order are exact."""
    return (1024 * numbers((size,), 1000 * seed + 100 + 50 * turn + i)).round() / 1024


def train(
    make: Callable,
    *,
    seed: int,
    sizes: tuple = SIZES,
    fp32: tuple | None = (),
    steps: int = 3,
    passes: int = 1,
    unused: tuple = (),
    unused_in: int = 1,
    order: tuple | None = None,
    adamw: dict | None = None,
    beside: bool = False,
) -> dict:
    """Steps with what ``make(parameters, link, **adamw)`` returns, after ``passes`` backward passes each.

    Parameters are bf16, those at the places ``fp32`` excepted (None: all are fp32). Those at the places ``unused``
    have no gradient in step ``unused_in``. ``order`` is the order in which the forward pass uses them; the backward
    pass comes to them the other way round. ``beside``: another model is trained in turn with this one.

    Reported are the ``values`` after each step; bytes that the device ``held`` and that were ``copied`` (to the host,
    to the device), when made and after each step; and of the last step the ``peak`` of the device's bytes in its
    backward passes, and the ``events`` and ``seconds`` of those passes and of the rest. ``where`` is each parameter's
    tier at the end; ``kept`` says whether they have the memory that they began with.
    """
    from ringzero.zero.home import Host

    kinds = types(sizes, fp32)
    with refused(Host.__init__), Tiers(BYTES_PER_SECOND, STEPS_PER_SECOND) as tiers:
        link = tiers.link

        def begin(start):
            return [
                torch.nn.Parameter(tiers.on_device(start_of(start, i, size).to(kind).clone()))
                for i, (size, kind) in enumerate(zip(sizes, kinds, strict=True))
            ]

        parameters, others = begin(seed), begin(seed + 1) if beside else []
        places = [p.data_ptr() for p in parameters]
        report: dict[str, Any] = {"values": [], "held": [], "copied": []}

        def note():
            report["held"].append(tiers.held["device"])
            report["copied"].append([link.bytes_to_host, link.bytes_to_device])

        def go_back(model, start, step, turn):
            loss = tiers.on_device(torch.zeros((), requires_grad=True))
            for i in order or range(len(model)):
                p = model[i]
                if step + 1 != unused_in or i not in unused:
                    loss = _Layer.apply(loss, p, tiers, (start, i, p.numel(), passes * step + turn))
            loss.backward()

        made = make(parameters, link, **(ADAMW if adamw is None else adamw))
        other = make(others, link, **(ADAMW if adamw is None else adamw)) if beside else None
        note()
        for step in range(steps):
            first, began = len(tiers.events), tiers.now
            tiers.start_peaks()
            for turn in range(passes):
                go_back(parameters, seed, step, turn)
                if other is not None:
                    go_back(others, seed + 1, step, turn)
            report["peak"], middle, middle_time = tiers.peak["device"], len(tiers.events), tiers.now
            if other is not None:
                other.step()
            made.step()
            report["events"] = [list(map(list, part)) for part in (tiers.events[first:middle], tiers.events[middle:])]
            report["seconds"] = [middle_time - began, tiers.now - middle_time]
            report["values"].append([p.tolist() for p in parameters])
            note()
        report["where"] = [tiers.tier_of(p) for p in parameters]
        report["kept"] = places == [p.data_ptr() for p in parameters]
    return report


class _Layer(torch.autograd.Function):
    """A layer whose gradient is made when the backward pass comes to it."""

    @staticmethod
    def forward(ctx, before, parameter, tiers, which):
        ctx.tiers, ctx.which, ctx.dtype = tiers, which, parameter.dtype
        return before.clone()

    @staticmethod
    def backward(ctx, gradient):
        size = ctx.which[2]
        ctx.tiers.compute("backward", size, size / BACKWARDS_PER_SECOND)
        return gradient, ctx.tiers.on_device(gradient_of(*ctx.which).to(ctx.dtype).clone()), None, None


def alone(
    *,
    seed: int,
    sizes: tuple = SIZES,
    fp32: tuple | None = (),
    steps: int = 3,
    passes: int = 1,
    unused: tuple = (),
    unused_in: int = 1,
    order: tuple | None = None,
    adamw: dict | None = None,
    beside: bool = False,
) -> list[list[torch.Tensor]]:
    """The parameters after each step of ``train``, from torch's AdamW on fp32 masters in one memory."""
    kinds = types(sizes, fp32)
    masters = [
        torch.nn.Parameter(start_of(seed, i, size).to(kind).float())
        for i, (size, kind) in enumerate(zip(sizes, kinds, strict=True))
    ]
    optimizer, values = torch.optim.AdamW(masters, **(ADAMW if adamw is None else adamw)), []
    for step in range(steps):
        for i, (p, kind) in enumerate(zip(masters, kinds, strict=True)):
            p.grad = None
            for turn in range(passes if step + 1 != unused_in or i not in unused else 0):
                gradient = gradient_of(seed, i, p.numel(), passes * step + turn).to(kind).float()
                p.grad = gradient if p.grad is None else p.grad + gradient
        optimizer.step()
        values.append([p.detach().to(kind).float().clone() for p, kind in zip(masters, kinds, strict=True)])
    return values
