"""Ranks that train alone for some steps: the parameters before every step, and what was sent between the steps."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from ringzero.lab.harness import training
from ringzero.lab.harness.sharded import numbers
from ringzero.lab.payloads import payloads
from ringzero.lab.unaided import UNSYNCED, unaided

SHAPES = ((5, 3), (7,), (2, 2, 2))  # of the parameters of ``outer_rounds``


class Momentum:
    """Gradient descent with momentum; torch.optim takes seconds to import."""

    def __init__(self, parameters, rate=0.2, momentum=0.9):
        self.parameters, self.rate, self.momentum = list(parameters), rate, momentum
        self.velocities = [torch.zeros_like(p) for p in self.parameters]
        self.steps = 0

    @torch.no_grad()
    def step(self):
        self.steps += 1
        for p, velocity in zip(self.parameters, self.velocities, strict=True):
            if p.grad is not None:
                velocity.mul_(self.momentum).add_(p.grad)
                self.move(p, velocity)

    def move(self, p, velocity):
        p.sub_(self.rate * velocity)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None


class Signs(Momentum):
    """As ``Momentum``, but it takes only the sign of its velocity: averaging is not linear any more, as with Adam."""

    def move(self, p, velocity):
        p.sub_(0.1 * self.rate * velocity.sign())


OPTIMIZERS = {"momentum": Momentum, "signs": Signs}


def train(
    local_sgd: Callable,
    *,
    seed: int,
    steps: int,
    h: int,
    optimizer: str = "momentum",
    hidden: tuple = (7, 5),
    precision: str = "float32",
    **model: Any,
) -> dict:
    """``local_sgd(model, optimizer, loss_of, batches, h)`` on models that begin alike, each rank on its part.

    The models' numbers have the ``precision``.

    Reported are all trained parameters as one vector before each step (``began``) and at the ``end``, how many tensors
    had been sent before each step (``sent_before``) and these tensors (``sent``), how often the optimizer ``stepped``,
    whether parameters are the objects that they were (``kept``; they may get other memory, as torch's
    ``vector_to_parameters`` gives them), and whether the list of batches changed (``batches_changed``).
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    module = training.Model(seed, hidden, **model).to(getattr(torch, precision))
    objects = [id(p) for p in module.parameters()]
    batches = batches_of(seed, steps)
    began, sent_before = [], []

    def loss_of(model, batch):
        began.append(vector_of(module))
        sent_before.append(len(sent))
        return _loss_of(model, batch, rank, ranks)

    with unaided(*UNSYNCED), payloads() as sent:
        made = OPTIMIZERS[optimizer](module.trained().values())
        local_sgd(module, made, loss_of, batches, h)
    return {
        "began": began,
        "end": vector_of(module),
        "sent": sent,
        "sent_before": sent_before,
        "stepped": made.steps,
        "kept": objects == [id(p) for p in module.parameters()],
        "batches_changed": batches != batches_of(seed, steps),
    }


def _loss_of(model, batch, rank, ranks):
    return training.loss_of(lambda x, rank: model(x.to(model.scale.dtype), rank), batch, rank, ranks)


def batches_of(seed: int, steps: int) -> list[int]:
    return [100 * seed + step for step in range(steps)]


def vector_of(module: training.Model) -> torch.Tensor:
    """A copy of all trained parameters, end to end."""
    return torch.cat([p.detach().reshape(-1) for p in module.trained().values()])


def alone(
    ranks: int,
    *,
    seed: int,
    steps: int,
    h: int,
    optimizer: str = "momentum",
    hidden: tuple = (7, 5),
    precision: str = "float32",
    averaged: str = "parameters",
    **model: Any,
) -> tuple[list, list]:
    """``(before, after)`` each step the vectors of all ranks, if one process does it all; ``after`` averaging.

    ``averaged`` is "parameters", every h steps; or "velocities", these too; or "gradients", in each step; or "nothing".
    "one step early" is as "parameters", before each h-th step; with "gradients kept" nobody clears them; "not at the
    end" leaves out the last time. "gradients, when due" are those of each h-th step.
    """
    modules = [training.Model(seed, hidden, **model).to(getattr(torch, precision)) for _ in range(ranks)]
    optimizers = [OPTIMIZERS[optimizer](module.trained().values()) for module in modules]
    before, after = [], []
    for step, batch in enumerate(batches_of(seed, steps), 1):
        before.append([vector_of(module) for module in modules])
        for rank, (module, each) in enumerate(zip(modules, optimizers, strict=True)):
            if averaged != "gradients kept":
                each.zero_grad()
            _loss_of(module, batch, rank, ranks).backward()
        due = is_due(step, steps, h)
        if averaged == "gradients" or (averaged == "gradients, when due" and due):
            _average([_gradients(module) for module in modules])
        for each in optimizers:
            each.step()
        after.append([vector_of(module) for module in modules])
        if averaged == "one step early":
            due = is_due(step - 1, steps - 1, h)
        if averaged == "not at the end":
            due = step % h == 0
        if averaged not in ("gradients", "gradients, when due", "nothing") and due:
            _average([list(module.trained().values()) for module in modules])
            if averaged == "velocities":
                _average([each.velocities for each in optimizers])
    return before, [*after, [vector_of(module) for module in modules]]


def _gradients(module):
    """Of all trained parameters; of those that were not used they are made, as zeros."""
    for p in module.trained().values():
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
    return [p.grad for p in module.trained().values()]


def is_due(step: int, steps: int, h: int) -> bool:
    """Whether ranks average after this step, counted from 1: after every h-th, and after the last."""
    return step % h == 0 or step == steps


@torch.no_grad()
def _average(lists):
    """Make the i-th tensors of all ranks' lists their mean."""
    for some in zip(*lists, strict=True):
        mean = torch.stack([t.detach() for t in some]).mean(0)
        for tensor in some:
            tensor.copy_(mean)


def outer_rounds(
    make: Callable, *, seed: int, lr: float, momentum: float, rounds: int = 3, shapes: tuple = SHAPES,
    beside: bool = False, precision: str = "float32", idle: int | None = None,
) -> dict:  # fmt: skip
    """``make(parameters, lr, momentum)``, and in each round local changes, then ``step()``.

    Reported are all parameters as one vector after each round, the tensors ``sent`` and how many before each round and
    at the end (``sent_before``), and whether parameters are the objects that they were (``kept``).
    ``beside``: another model has its rounds in turn with this one. The numbers have the ``precision``. In the round
    ``idle``, counted from 0, odd ranks change nothing.
    """
    rank, here, dtype = dist.get_rank(), torch.get_default_device(), getattr(torch, precision)
    parameters = [torch.nn.Parameter(start_of(seed, i, shape).to(here, dtype)) for i, shape in enumerate(shapes)]
    handed_out, values, sent_before = list(parameters), [], []
    others = [torch.nn.Parameter(p.detach().clone()) for p in parameters]
    with unaided(*UNSYNCED), payloads() as sent:
        outer = make(handed_out, lr, momentum)
        other = make(others, lr, momentum) if beside else None
        for turn in range(rounds):
            if other is not None:
                other.step()
            with torch.no_grad():
                for i, p in enumerate(parameters if turn != idle or rank % 2 == 0 else []):
                    p.add_(change_of(seed, i, shapes[i], turn, rank).to(here))
            sent_before.append(len(sent))
            outer.step()
            values.append(torch.cat([p.detach().reshape(-1).clone() for p in parameters]))
        sent_before.append(len(sent))
    kept = all(p is q for p, q in zip(parameters, handed_out, strict=True))
    return {"values": values, "sent": sent, "sent_before": sent_before, "kept": kept}


def start_of(seed: int, i: int, shape: tuple) -> torch.Tensor:
    return numbers(shape, 1000 * seed + i)


def change_of(seed: int, i: int, shape: tuple, turn: int, rank: int) -> torch.Tensor:
    """What a rank's local steps of a round change of parameter i."""
    return 0.3 * numbers(shape, 1000 * seed + 100 + 20 * turn + i) + 0.3 * numbers(
        shape, 1000 * seed + 500 + 20 * turn + i + 7919 * (rank + 1)
    )
