"""Data-parallel training for checks: a model that forgives less than a plain MLP, and some steps on every rank.

The model notes when the backward pass comes to each of its layers. With the ranks' records of what they sent, the
order of events then proves what overlapped with what, and the student's code has no part in the proof.

``claims.training`` is about runs of ``train`` and of the functions below it; ``alone`` says what they should give.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from ringzero.data_parallel import DistributedDataParallel
from ringzero.record import recorder

INPUTS, OUTPUTS, SAMPLES = 6, 3, 8  # samples a rank and batch
RATE = 0.1
# Options of a case that make the model.
MODEL = ("seed", "hidden", "double", "frozen", "tied", "skipped", "skipped_on_odd", "zeros_on_odd", "buffer_in", "gain")


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


class Model(nn.Module):
    """Linear layers from 6 inputs over the widths ``hidden`` to 3 outputs, and three buffers of different kinds.

    ``seed``     of parameters and buffers; they are made on the CPU, so the same on every device
    ``frozen``   numbers of layers that are not trained
    ``tied``     two layers that have one weight between them
    ``double``   layers of two matrices, with a tanh between them
    ``skipped``  layers that are not used: on no rank, or on odd ranks only with ``skipped_on_odd``
    ``zeros_on_odd``  layers whose output is 0 on odd ranks, so that their gradients are zeros there
    ``buffer_in`` layers that have one more buffer, which they share
    ``gain``     whether there is one more parameter, a single number in no layer

    ``begun[i]`` is when the last backward pass came to layer i, ``seen`` all samples of the forward passes.
    """

    def __init__(
        self, seed, hidden=(11, 5, 13), double=(), frozen=(), tied=(), skipped=(), skipped_on_odd=(), zeros_on_odd=(),
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
                width = self.layers[i].out_features
                self.layers[i] = nn.Sequential(self.layers[i], nn.Tanh(), nn.Linear(width, width))
            seen = torch.rand(4)
            for i in buffer_in:
                self.layers[i].register_buffer("seen", seen)
        if tied:
            one, other = tied
            self.layers[other].weight = self.layers[one].weight
        for i in frozen:
            self.layers[i].requires_grad_(False)
        self.gain = nn.Parameter(torch.rand((), device="cpu")) if gain else 1.0
        self.skipped, self.skipped_on_odd, self.zeros_on_odd = skipped, skipped_on_odd, zeros_on_odd
        self.begun, self.seen = {}, []
        self.to(torch.get_default_device())

    def forward(self, x, rank=0):
        self.seen.append(x.detach())
        for i, layer in enumerate(self.layers):
            if i not in self.skipped and not (rank % 2 and i in self.skipped_on_odd):
                x = torch.tanh(Mark.apply(layer(x), self.begun, i))
                x = 0 * x if rank % 2 and i in self.zeros_on_odd else x
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


def train(
    wrap: Callable,
    *,
    seed: int,
    cap: int | None = None,
    steps: int = 2,
    passes: int = 1,
    last_skips: tuple = (),
    skips: tuple = (),
    to_none: bool = True,
    alike: bool = False,
    silent: bool = True,
    forward_outside: bool = False,
    beside: bool = False,
    **model: Any,
) -> dict:
    """On a rank: ``steps`` steps of SGD with ``wrap(Model(seed, **model), cap)``, and what there is to report of them.

    ``passes``      backward passes a step; all but the last inside ``no_sync()`` of what ``wrap`` returned
    ``last_skips``  layers that the last pass of a step does not use
    ``skips``       layers that the first step does not use, and the second, …
    ``to_none``     as of ``zero_grad``
    ``silent``      whether all passes but the last are inside ``no_sync``; if not, each of them averages
    ``forward_outside``  the forward passes of what is inside ``no_sync`` come before it
    ``beside``      another model is wrapped, too, and both have their passes in turn; it is not reported
    ``alike``       the ranks' models begin alike; if not, each has a seed of its own

    Reported are the model's state at the ``start`` and at the ``end``, the ``gradients`` of the first step (after a
    wrong step all that follows is wrong), and of each of the ``steps`` the times when it ``began``, when it left
    ``no_sync`` (``quiet_until``), when its backward pass was ``over``, when that came to each layer (``begun``), and
    whether it used all layers (``all_used``).
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for theirs in (nn.parallel.DistributedDataParallel, DistributedDataParallel):
        theirs.__init__ = _refuse  # type: ignore[method-assign]  # on this rank, which lives as long as the call
    module = Model(seed if alike else seed + rank, **model)
    wrapped, skipped = wrap(module, cap), module.skipped
    _must_be_their_own(wrapped)
    report: dict[str, Any] = {"start": _state(module), "steps": []}
    other = wrap(Model(seed + 1000 + rank, **model), cap) if beside else None
    for step in range(steps):
        unused = skipped + _of_step(skips, step)
        times: dict[str, Any] = {"began": time.time()}
        report["steps"].append(times)
        module.skipped = unused
        if passes > 1:
            parts: Iterable = (loss_of(wrapped, seed + 100 * step + i, rank, ranks) for i in range(1, passes))
            parts = list(parts) if forward_outside else parts
            with wrapped.no_sync() if silent else nullcontext():
                for part in parts:
                    part.backward()
                times["quiet_until"] = time.time()
                _nothing_is_left_open(times["began"])
        module.begun.clear()
        module.skipped = unused + last_skips
        losses = [loss_of(each, seed + 100 * step, rank, ranks) for each in (wrapped, other) if each is not None]
        for loss in losses[::-1]:
            loss.backward()
        all_used = not module.skipped and not module.skipped_on_odd
        times |= {"over": time.time(), "begun": dict(module.begun), "all_used": all_used}
        for each in (wrapped, other):
            if each is not None and hasattr(each, "finish"):
                each.finish()
        if other is not None:
            other.zero_grad(set_to_none=to_none)
        if step == 0:
            report["gradients"] = {n: None if p.grad is None else p.grad.clone() for n, p in module.trained().items()}
        _step(module)
        module.zero_grad(set_to_none=to_none)
    report["end"] = _state(module)
    if cap is not None:  # bytes of each bucket
        buckets = getattr(wrapped, "buckets", ())
        report["buckets"] = [sum(p.numel() * p.element_size() for p in bucket.parameters) for bucket in buckets]
    return report


def train_in_place(change: Callable, **case: Any) -> dict:
    """``train`` for a function that changes the model itself, on ranks whose models begin alike."""

    def wrap(model, cap):
        change(model)
        return model

    return train(wrap, alike=True, **case)


def train_accumulating(wrap: Callable, before: str | None = None, **case: Any) -> dict:
    """``train`` after something happened to ``no_sync``: "an exception inside", or "one inside another" each time.

    Or "an exception in an inner one" each time, or inside "another model's", all the time.
    """

    def prepared(model, cap):
        wrapped = wrap(model, cap)
        if before == "an exception inside":
            _ends_with_an_exception(wrapped.no_sync)
        elif before in ("one inside another", "an exception in an inner one"):
            wrapped.no_sync = nested(wrapped.no_sync)
        return wrapped

    def nested(no_sync):
        @contextmanager
        def twice():
            with no_sync():
                if before == "an exception in an inner one":
                    _ends_with_an_exception(no_sync)
                else:
                    with no_sync():
                        pass
                yield

        return twice

    if before == "another model's":
        with wrap(Model(case["seed"] + 1000), case["cap"]).no_sync():
            return train(prepared, **case)
    return train(prepared, **case)


def _ends_with_an_exception(no_sync):
    for kind in (KeyError, KeyboardInterrupt):
        try:
            with no_sync():
                raise kind
        except kind:
            continue
        raise RuntimeError("no_sync kept to itself an exception that was raised inside: let it go on")


def gradients_of_part(loss_of_part: Callable, samples: int, seed: int, columns: int = OUTPUTS) -> dict:
    """The gradients and the loss of this rank's part of a batch, and the samples that its model was given.

    Of what the model makes, so many ``columns`` count. ``kept`` says whether the batch is what it was.
    """
    model = Model(seed)
    x, y = batch(seed, samples)
    loss = loss_of_part(lambda x: model(x)[:, :columns], x, y[:, :columns])
    loss.backward()
    return {
        "gradients": {name: p.grad for name, p in model.named_parameters()},
        "loss": loss.reshape(1),
        "seen": torch.cat(model.seen),
        "calls": len(model.seen),
        "kept": all(torch.equal(*both) for both in zip((x, y), batch(seed, samples), strict=True)),
    }


def state_after_start(start_alike: Callable, seed: int, **kind: Any) -> dict:
    """Trained and frozen parameters and buffers by name; whether parameters are the objects they were, ``kept``.

    ``moved`` are names of parameters and buffers that have other memory now.
    """
    model = Model(seed + dist.get_rank(), **kind)
    places = _places(model)
    before = [(name, id(p), p.requires_grad) for name, p in model.named_parameters()]
    start_alike(model)
    kept = before == [(name, id(p), p.requires_grad) for name, p in model.named_parameters()]
    moved = [name for name, place in _places(model).items() if place != places.get(name)]
    state = {"trained": model.trained(), "frozen": model.frozen(), "buffers": dict(model.named_buffers())}
    return state | {"kept": kept, "moved": moved}


def _places(module):
    return {name: t.data_ptr() for name, t in (*module.named_parameters(), *module.named_buffers())}


def alone(
    ranks: int,
    *,
    seed: int,
    steps: int = 2,
    passes: int = 1,
    last_skips: tuple = (),
    skips: tuple = (),
    only: int | None = None,
    **case: Any,
) -> dict:
    """What ``train`` comes to if one process does the parts of all ranks, or of rank ``only``: its report."""
    module = model_of(seed=seed, **case)
    skipped, report = module.skipped, {"start": _state(module)}
    for step in range(steps):
        module.zero_grad()
        for i in reversed(range(passes)):
            module.skipped = skipped + _of_step(skips, step) + last_skips * (i == 0)
            for rank in range(ranks) if only is None else [only]:
                (loss_of(module, seed + 100 * step + i, rank, ranks) / (ranks if only is None else 1)).backward()
        for p in module.trained().values():
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad  # nobody used it
        report.setdefault("gradients", {name: p.grad.clone() for name, p in module.trained().items()})
        _step(module)
    return report | {"end": _state(module)}


def _of_step(skips, step):
    return tuple(skips[step]) if step < len(skips) else ()


def _state(module):
    return {name: t.detach().clone() for name, t in (*module.named_parameters(), *module.named_buffers())}


def _refuse(self, *_, **__):
    raise RuntimeError(f"{type(self).__module__}.{type(self).__name__} is not to be used: write it yourself")


def _must_be_their_own(wrapped):
    for part in wrapped.modules():
        if type(part).__module__.startswith(("ringzero.data_parallel", "torch.nn.parallel", "torch.distributed")):
            _refuse(part)


def _nothing_is_left_open(since):
    """Raise if an operation was started and not waited for; no claim is judged on a run that has one."""
    for op in recorder.recorded():
        if op.end is None and op.start >= since:
            raise RuntimeError(f"{op.kind} of {op.bytes} bytes started inside no_sync")


@torch.no_grad()
def _step(module):
    """One of SGD; torch.optim takes a second to import."""
    for p in module.trained().values():
        if p.grad is not None:
            p -= RATE * p.grad


def model_of(**case: Any) -> Model:
    """The model of a case, whose other options are left out."""
    return Model(**{name: value for name, value in case.items() if name in MODEL})
