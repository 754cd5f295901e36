"""Random models and loops: what ``hypothesis`` puts together from tied, frozen, reused, nested and unused parts."""

import contextlib
from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.peers.behaviours import ADAMW, WIDTH, batch
from tests.peers.trainers import SGD

MOMENTUM = (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9})
KINDS = ("linear", "no bias", "norm", "scale", "nested", "pair", "holder")
HOWS = ("plain", "plain", "checkpoint", "reentrant")


@dataclass(frozen=True)
class Part:
    """A part of a model: its ``kind``, whether it is ``frozen``, and the place of the part whose weight it has too."""

    kind: str
    frozen: bool
    tied_to: int | None


@dataclass(frozen=True)
class Plan:
    """``calls`` are places of parts and how each is called; ``aside`` is a part whose loss is an attribute."""

    parts: tuple[Part, ...]
    calls: tuple[tuple[int, str], ...]
    aside: int | None
    losses: int
    micro_batches: int
    no_sync: bool
    optimizer: str
    clip: float | None
    wrapped_again: bool


def plans():
    part = st.builds(
        Part, st.sampled_from(KINDS), st.sampled_from((False, False, False, True)), st.none() | st.integers(0, 5)
    )
    call = st.tuples(st.integers(0, 5), st.sampled_from(HOWS))
    return st.builds(
        Plan,
        parts=st.lists(part, min_size=1, max_size=5).map(tuple),
        calls=st.lists(call, min_size=1, max_size=6).map(tuple),
        aside=st.none() | st.integers(0, 5),
        losses=st.integers(1, 2),
        micro_batches=st.sampled_from((1, 1, 2, 3)),
        no_sync=st.booleans(),
        optimizer=st.sampled_from(("sgd", "momentum", "adamw")),
        clip=st.none() | st.sampled_from((0.05, 1.0)),
        wrapped_again=st.sampled_from((False, False, False, True)),
    )


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = nn.Parameter(torch.ones(()))
        self.register_buffer("shift", torch.linspace(-1, 1, WIDTH))

    def forward(self, x):
        return self.by * x + self.shift


class Pair(nn.Module):
    """It returns an object, not a tensor."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return Box(self.one(x) - self.other(torch.tanh(x)))


class Holder(nn.Module):
    """Its parameters are in a list."""

    def __init__(self):
        super().__init__()
        self.held = nn.ParameterList([nn.Parameter(torch.rand(WIDTH)) for _ in range(2)])

    def forward(self, x):
        return x * self.held[0] + self.held[1]


class Box:
    def __init__(self, value):
        self.value = value


MAKE = {
    "linear": lambda: nn.Linear(WIDTH, WIDTH),
    "no bias": lambda: nn.Linear(WIDTH, WIDTH, bias=False),
    "norm": lambda: nn.LayerNorm(WIDTH),
    "scale": Scale,
    "nested": lambda: nn.Sequential(nn.Linear(WIDTH, 3), nn.Sequential(nn.Tanh(), nn.Linear(3, WIDTH))),
    "pair": Pair,
    "holder": Holder,
}


class Generated(nn.Module):
    def __init__(self, plan):
        super().__init__()
        self.plan = plan
        self.parts = nn.ModuleList(MAKE[part.kind]() for part in plan.parts)
        for part, module in zip(plan.parts, self.parts, strict=True):
            other = self.parts[(part.tied_to or 0) % len(self.parts)]
            if part.tied_to is not None and isinstance(module, nn.Linear) and isinstance(other, nn.Linear):
                module.weight = other.weight
        for part, module in zip(plan.parts, self.parts, strict=True):
            if part.frozen and any(not other.frozen for other in plan.parts):
                module.requires_grad_(False)
        self.last = nn.Linear(WIDTH, 2)

    def forward(self, x):
        self.aside = 0.0
        for place, how in self.plan.calls:
            x = torch.tanh(x + self.call(self.parts[place % len(self.parts)], x, how))
        if self.plan.aside is not None:
            self.aside = value_of(self.parts[self.plan.aside % len(self.parts)](x)).square().mean()
        return self.last(x)

    def call(self, part, x, how):
        if isinstance(part, Pair) or (how == "reentrant" and self.is_shared(part)):  # that is refused
            return value_of(part(x))
        return part(x) if how == "plain" else checkpoint(part, x, use_reentrant=how == "reentrant")

    def is_shared(self, part):
        """Whether it, or a parameter of it, is used at another place too."""
        used = [self.parts[place % len(self.parts)] for place, _ in self.plan.calls]
        used += [] if self.plan.aside is None else [self.parts[self.plan.aside % len(self.parts)]]
        mine = set(part.parameters())
        return sum(not mine.isdisjoint(other.parameters()) for other in used) > 1


def value_of(output):
    return output.value if isinstance(output, Box) else output


def model_of(plan):
    torch.manual_seed(0)
    return Generated(plan).double()


def unused_by(plan):
    """Names of the parameters that have no gradient: a trainer must be told."""
    model = model_of(plan)
    loss_of(model, model, batch(0).requires_grad_()).backward()
    return [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]


def loss_of(module, model, x):
    output = model(x)
    return output.square().mean() + 0.1 * module.aside


def train(plan, make, steps=2):
    """What ``plan`` trains under a trainer."""
    module, optimizer = model_of(plan), {"sgd": SGD, "momentum": MOMENTUM, "adamw": ADAMW}[plan.optimizer]
    for _ in range(2 if plan.wrapped_again else 1):
        trainer = make(module, optimizer, unused=unused_by(plan))
        for step in range(steps):
            parts = trainer.part(batch(step)).chunk(plan.micro_batches)
            for i, part in enumerate(parts):
                quiet = plan.no_sync and i + 1 < len(parts)
                with trainer.no_sync() if quiet else contextlib.nullcontext():
                    loss = loss_of(module, trainer, part.clone().requires_grad_()) / len(parts)
                    if plan.losses == 2:
                        (0.3 * loss).backward(retain_graph=True)
                    (loss * (0.7 if plan.losses == 2 else 1.0)).backward()
            if plan.clip is not None:
                trainer.clip(plan.clip)
            trainer.step()
            trainer.zero_grad()
    return trainer.state()
