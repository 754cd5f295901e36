"""Data-parallel training for checks: a model that forgives less than a plain MLP, some steps, and claims about them.

The model notes when the backward pass comes to each of its layers. With the ranks' records of what they sent, the
order of events then proves what overlapped with what, and the student's code has no part in the proof.

A check's function calls ``train(wrap, **case)`` on every rank; the claims here are about such a run.
"""

import time
from functools import lru_cache

import torch
import torch.distributed as dist
from torch import nn

from ringzero.lab import claims
from ringzero.launch import trace

INPUTS, OUTPUTS, SAMPLES = 6, 3, 8  # samples a rank and batch
RATE = 0.1
MODEL = ("seed", "hidden", "frozen", "tied", "skipped", "skipped_on_odd")  # options of a case that make the model


class Mark(torch.autograd.Function):
    """The identity; when the backward pass comes by, it notes the time in ``times[key]``."""

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
    ``skipped``  layers that are not used: on no rank, or on odd ranks only with ``skipped_on_odd``

    ``begun[i]`` is when the last backward pass came to layer i, ``seen`` all samples of the forward passes.
    """

    def __init__(self, seed, hidden=(11, 5, 13), frozen=(), tied=(), skipped=(), skipped_on_odd=()):
        super().__init__()
        torch.manual_seed(seed)
        widths = [INPUTS, *hidden, OUTPUTS]
        with torch.device("cpu"):
            self.layers = nn.ModuleList(nn.Linear(n, m) for n, m in zip(widths, widths[1:], strict=False))
            self.register_buffer("scale", 1 + torch.rand(OUTPUTS))
            self.register_buffer("shift", torch.rand(OUTPUTS), persistent=False)
            self.register_buffer("count", torch.randint(1000, ()))
        if tied:
            one, other = tied
            self.layers[other].weight = self.layers[one].weight
        for i in frozen:
            self.layers[i].requires_grad_(False)
        self.skipped, self.skipped_on_odd = skipped, skipped_on_odd
        self.begun, self.seen = {}, []
        self.to(torch.get_default_device())

    def forward(self, x, rank=0):
        self.seen.append(x.detach())
        for i, layer in enumerate(self.layers):
            if i not in self.skipped and not (rank % 2 and i in self.skipped_on_odd):
                x = torch.tanh(Mark.apply(layer(x), self.begun, i))
        return x * self.scale + self.shift

    def trained(self):
        return {name: p for name, p in self.named_parameters() if p.requires_grad}


def batch(number, samples=24):
    """A whole batch, the same on every rank: ``(x, y)`` of shapes (samples, 6) and (samples, 3)."""
    source = torch.Generator("cpu").manual_seed(number)
    device = torch.get_default_device()
    with torch.device("cpu"):
        x, y = torch.randn(samples, INPUTS, generator=source), torch.randn(samples, OUTPUTS, generator=source)
    return x.to(device), y.to(device)


def loss_of(forward, number, rank, ranks):
    """The mean squared error over a rank's part of batch ``number``; all ranks' parts have one size."""
    x, y = batch(number, SAMPLES * ranks)
    return (forward(x[rank::ranks], rank) - y[rank::ranks]).square().mean()


def train(wrap, *, seed, cap=None, steps=2, passes=1, last_skips=(), to_none=True, alike=False, **model):
    """On a rank: ``steps`` steps of SGD with ``wrap(Model, cap)``, and what there is to report of them.

    ``passes``      backward passes a step; all but the last inside ``no_sync()`` of what ``wrap`` returned
    ``last_skips``  layers that the last pass of a step does not use
    ``to_none``     as of ``zero_grad``
    ``alike``       the ranks' models begin alike; if not, each has a seed of its own

    Times and ``begun`` are of the last step, ``gradients`` of the first: after a wrong step all that follows is wrong.
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    nn.parallel.DistributedDataParallel.__init__ = _refuse  # on this rank, which lives as long as the call
    module = Model(seed if alike else seed + rank, **model)
    wrapped, skipped = wrap(module, cap), module.skipped
    _must_be_their_own(wrapped)
    report = {"start": _state(module)}
    for step in range(steps):
        report["began"], module.skipped = time.time(), skipped
        if passes > 1:
            with wrapped.no_sync():
                for i in range(1, passes):
                    loss_of(wrapped, seed + 100 * step + i, rank, ranks).backward()
                report["quiet until"] = time.time()
                _nothing_is_left_open(report["began"])
        module.begun.clear()
        module.skipped = skipped + last_skips
        loss_of(wrapped, seed + 100 * step, rank, ranks).backward()
        report["over"] = time.time()
        if hasattr(wrapped, "finish"):
            wrapped.finish()
        if step == 0:
            report["gradients"] = {n: None if p.grad is None else p.grad.clone() for n, p in module.trained().items()}
        _step(module)
        module.zero_grad(set_to_none=to_none)
    return report | {"end": _state(module), "begun": dict(module.begun)}


def alone(ranks, *, seed, steps=2, passes=1, last_skips=(), only=None, **case):
    """What ``train`` comes to if one process does the parts of all ranks, or of rank ``only``: its report."""
    module = _model(seed=seed, **case)
    skipped, report = module.skipped, {"start": _state(module)}
    for step in range(steps):
        module.zero_grad()
        for i in reversed(range(passes)):
            module.skipped = skipped + last_skips * (i == 0)
            for rank in range(ranks) if only is None else [only]:
                (loss_of(module, seed + 100 * step + i, rank, ranks) / (ranks if only is None else 1)).backward()
        for p in module.trained().values():
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad  # nobody used it
        report.setdefault("gradients", {name: p.grad.clone() for name, p in module.trained().items()})
        _step(module)
    return report | {"end": _state(module)}


def _state(module):
    return {name: t.detach().clone() for name, t in (*module.named_parameters(), *module.named_buffers())}


def _refuse(self, *_, **__):
    raise RuntimeError(f"{type(self).__module__}.{type(self).__name__} is not to be used: write it yourself")


def _must_be_their_own(wrapped):
    for part in wrapped.modules():
        if type(part).__module__.startswith(("ringzero.data_parallel", "torch.nn.parallel", "torch.distributed")):
            _refuse(part)


def _nothing_is_left_open(since):
    """Said here and not by a claim: a run with an operation that nobody waits for proves nothing else."""
    for op in trace.recorded():
        if op["end"] is None and op["start"] >= since:
            raise RuntimeError(f"{op['kind']} of {op['bytes']} bytes started inside no_sync")


@torch.no_grad()
def _step(module):
    """One of SGD; torch.optim takes a second to import."""
    for p in module.trained().values():
        if p.grad is not None:
            p -= RATE * p.grad


def _model(**case):
    return Model(**{name: value for name, value in case.items() if name in MODEL})


def as_one_process(run):
    """All start as rank 0, the first step's gradients are the mean over the ranks, and the end is as in one process."""
    right = _right(run)
    for what, key in (("at the start", "start"), ("the gradient of", "gradients"), (f"after {_steps(run)}", "end")):
        why = claims.close_by_name(what, [report[key] for report in run.returned], right[key])
        if why:
            return (key == "gradients" and _never_averaged(run)) or why
    return None


def _never_averaged(run):
    """Which gradient is not the mean, if what it is instead is the gradient of the rank's own part."""
    for rank, report in enumerate(run.returned):
        own, mean = _right(run, rank)["gradients"], _right(run)["gradients"]
        for name, gradient in report["gradients"].items():
            far = claims.close_by_name("", [{name: gradient}], {name: mean[name]})
            if far and not claims.close_by_name("", [{name: gradient}], {name: own[name]}):
                return f"on rank {rank} the gradient of {name} is that of its own part: it was not averaged"
    return None


def _right(run, only=None):
    return _alone(run.world_size, tuple(run.case.options.items()), only)


@lru_cache(maxsize=32)
def _alone(ranks, options, only):
    return alone(ranks, only=only, **dict(options))


def _steps(run):
    steps = run.case.options.get("steps", 2)
    return f"{steps} step{'s' * (steps > 1)}"


def alike_on_all_ranks(run):
    """Parameters and buffers are the same on all ranks in the end, to the last bit."""
    for name in run.returned[0]["end"]:
        if why := claims.same(name, [report["end"][name] for report in run.returned]):
            return why
    return None


def buckets(run):
    """``(bytes, first layer)`` of each bucket of the run's model, as torch itself would assign them."""
    sizes, layers = [], []
    for name, parameter in _model(**run.case.options).trained().items():
        sizes.append(parameter.numel() * parameter.element_size())
        layers.append(int(name.split(".")[1]))
    found = assignment(sizes, run.case.options["cap"])
    return [(sum(sizes[i] for i in some), min(layers[i] for i in some)) for some in found]


def assignment(sizes, cap):
    """Torch's own assignment of parameters of these sizes in bytes to buckets of ``cap`` bytes, last one first."""
    tensors = [torch.empty(size, dtype=torch.uint8, device="cpu") for size in reversed(sizes)]
    found, _ = dist._compute_bucket_assignment_by_size(tensors, [cap], [False] * len(tensors))
    return [[len(sizes) - 1 - i for i in bucket] for bucket in found]


def all_reduces(run, rank):
    return [op for op in run.operations[rank] if op["kind"] == "all_reduce"]


def one_all_reduce_a_bucket(run):
    """In each step a rank reduces its buckets, each once and whole, the last layer's first. Alone, it may not."""
    expected = [size for size, _ in buckets(run)]
    for rank in range(run.world_size if run.world_size > 1 else 0):
        made, steps = [op["bytes"] for op in all_reduces(run, rank)], run.case.options.get("steps", 2)
        if made != steps * expected:
            return f"in {_steps(run)} rank {rank} all-reduced {_list(made)} bytes, expected {_list(expected)} in each"
    return None


def _list(numbers, most=8):
    shown = ", ".join(map(str, numbers[:most])) or "no"
    return shown + (f", … ({len(numbers)} messages)" if len(numbers) > most else "")


def leaves_while_backward_runs(run):
    """Each bucket leaves before the backward pass comes to the next layer, and is waited for when it is over."""
    if run.world_size == 1:
        return None
    filled = buckets(run)
    for rank, report in enumerate(run.returned):
        made = [op for op in all_reduces(run, rank) if op["start"] >= report["began"]]
        if len(made) != len(filled):
            times = f"{len(made)} all-reduce{'s' * (len(made) != 1)}"
            return f"rank {rank} made {times} in the last step, expected {len(filled)}"
        for number, (op, (_, layer)) in enumerate(zip(made, filled, strict=True), 1):
            which = f"rank {rank}, bucket {number} of {len(filled)}"
            late = [i for i, when in report["begun"].items() if i < layer and when < op["start"]]
            if op["start"] > report["over"] and late:
                return f"{which}: full when layer {layer} was done, but it left after the backward pass"
            if late:
                return f"{which}: full when layer {layer} was done, but it left when layer {min(late)} had begun"
            if op["wait"] is None:
                return f"{which}: never waited for"
            if op["wait"] < report["over"]:
                return f"{which}: waited for before the backward pass was over, which stood still meanwhile"
    return None


def silent_inside_no_sync(run):
    """In the last step no rank sends anything inside ``no_sync``."""
    for rank, report in enumerate(run.returned):
        for op in run.operations[rank]:
            if report["began"] <= op["start"] <= report["quiet until"]:
                return f"rank {rank} called {op['kind']} on {op['bytes']} bytes inside no_sync"
    return None
