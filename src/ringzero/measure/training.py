"""Training steps that are both run and predicted: two models, each way to share gradients, the steps of ``steps``."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn

from ringzero.data_parallel import DistributedDataParallel, NaiveDataParallel
from ringzero.measure.rates import reference
from ringzero.measure.turns import seconds_in_turns
from ringzero.record import computing
from ringzero.steps import systems
from ringzero.steps.machine import Machine
from ringzero.steps.run import Timed, run
from ringzero.steps.task import Step
from ringzero.steps.unit import Unit
from ringzero.zero import STAGES, Host


class Shape(NamedTuple):
    """A stack of linear layers, each with a ReLU, over so many tokens a rank: ``widths`` from input to output."""

    tokens: int
    widths: tuple[int, ...]

    @property
    def sides(self) -> list[tuple[int, int]]:
        """Inputs and outputs of each layer."""
        return list(pairwise(self.widths))

    def module(self) -> nn.Sequential:
        torch.manual_seed(0)
        model = nn.Sequential(*(nn.Sequential(nn.Linear(*both), nn.ReLU()) for both in self.sides))
        for layer in model.modules():
            if isinstance(layer, nn.Linear):
                nn.init.kaiming_normal_(layer.weight)  # of one scale through all layers
        return model

    def loss(self) -> Callable[[nn.Module], torch.Tensor]:
        """Of a batch that the model cannot learn: gradients that fall below 1e-38 would make AdamW twice as slow."""
        x, y = torch.randn(self.tokens, self.widths[0]), torch.randn(self.tokens, self.widths[-1])
        return lambda model: (model(x) - y).square().mean()

    def units(self, machine: Machine) -> list[Unit]:
        units = []
        for i, (inputs, outputs) in enumerate(self.sides):
            forward, backward = machine.product_seconds(self.tokens, inputs, outputs)
            backward /= 1 if i else 2  # the first layer's input needs no gradient
            units.append(Unit(f"layer {i}", (inputs * outputs, outputs), forward, backward, 4 * self.tokens * outputs))
        return units


SHAPES = {
    "12 equal layers": Shape(256, (512,) * 13),
    "wide and narrow": Shape(192, (384, 1152) * 4 + (384,)),
}
MIB = 2**20
REFERENCE = "reference"


@dataclass(frozen=True)
class Way:
    """A way to train: ``make(module, group)`` returns ``(model, step)``; ``plan(units, machine)`` its tasks."""

    make: Callable[[nn.Module, Any], tuple[nn.Module, Callable[[], None]]]
    plan: Callable[[Sequence[Unit], Machine], Step]


def _replicated(kind: type, plan: Callable[..., Step], **options: Any) -> Way:
    def make(module: nn.Module, group: Any) -> tuple[nn.Module, Callable[[], None]]:
        model = kind(module, group=group, **options)
        return model, torch.optim.AdamW(module.parameters()).step

    return Way(make, plan)


def _ddp(cap: float) -> Way:
    plan = partial(systems.data_parallel, bucket_bytes=cap * MIB)
    return _replicated(DistributedDataParallel, plan, bucket_cap_mb=cap)


def _zero(stage: int, cap: float = 25, home: Callable[[], Any] | None = None) -> Way:
    """``home()`` says where the optimizer's states are."""

    def make(module: nn.Module, group: Any) -> tuple[nn.Module, Callable[[], None]]:
        parts = {"units": list(module.children())} if stage == 3 else {"bucket_cap_mb": cap}
        model = STAGES[stage](module, torch.optim.AdamW, group=group, home=home and home(), **parts)
        return model, model.step

    return Way(make, partial(systems.zero, stage=stage, bucket_bytes=cap * MIB, offload=home is not None))


def _alone(units: Sequence[Unit], machine: Machine) -> Step:
    """Computing and AdamW, with neither messages nor buckets."""
    one = replace(machine, nodes=1, ranks_per_node=1, memory_bandwidth=math.inf, adam=machine.adam_seconds(1))
    return systems.data_parallel(units, one, how="flat")


NOTHING_SENT = "nothing sent"  # how far off computing alone is
WAYS = {
    NOTHING_SENT: Way(lambda module, group: (module, torch.optim.AdamW(module.parameters()).step), _alone),
    "naive": _replicated(NaiveDataParallel, partial(systems.data_parallel, how="naive")),
    "DDP, buckets of 1 MiB": _ddp(1),
    "DDP, buckets of 4 MiB": _ddp(4),
    "ZeRO-1": _zero(1, 4),
    "ZeRO-2": _zero(2, 4),
    "ZeRO-2, buckets of 1 MiB": _zero(2, 1),
    "ZeRO-3": _zero(3),
    "ZeRO-2, offloaded": _zero(2, 4, home=Host),
}


def predicted(way: str, shape: Shape, machine: Machine) -> Timed:
    """The step on paper."""
    return run(WAYS[way].plan(shape.units(machine), machine))


def measured(ways: Sequence[str], shape: Shape, steps: int) -> dict[str, list[float]]:
    """On each rank: the seconds of each of ``steps`` steps of each way on the slowest rank, taken in turns.

    ``REFERENCE`` is one of the ways: work that tells how fast the machine was meanwhile.
    """
    group = dist.new_group(backend="gloo") if torch.get_default_device().type == "cpu" else None
    trainers = {way: WAYS[way].make(shape.module(), group) for way in ways}
    loss = shape.loss()

    def train(model: nn.Module, step: Callable[[], None]) -> None:
        loss(model).backward()
        step()
        model.zero_grad()

    calls = {way: partial(train, *trainer) for way, trainer in trainers.items()} | {REFERENCE: reference()}
    return seconds_in_turns(calls, steps, group)


def traced(way: str, shape: Shape, warm_up: int = 3) -> float:
    """On each rank, called with ``trace=True``: steps whose passes are recorded. Returns when the last one began."""
    model, step = WAYS[way].make(shape.module(), None)
    loss_of = shape.loss()
    for _ in range(warm_up + 1):
        dist.barrier()
        start = time.time()
        with computing("forward"):
            loss = loss_of(model)
        with computing("backward"):
            loss.backward()
        with computing("optimizer"):
            step()
        model.zero_grad()
    return start


def step_seconds(ranks: Sequence[dict[str, list[float]]], way: str) -> float:
    """The median step, of what ``measured`` returned on the ranks: on each the slowest rank's seconds."""
    return statistics.median(ranks[0][way])
