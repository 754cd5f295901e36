"""When a server makes a new version of a slice, and which workers get it.

A worker pushes the gradient of a slice, and says on which version of the slice the gradient is based. The ``Rule``
decides when a new version is made, and whether the worker has its answer at once or waits for others.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import Parameter

from ringzero.collectives.schedule import is_number, is_whole


@dataclass
class Workers:
    """``number`` that began, and those of them that still push."""

    number: int
    live: set[int]


@dataclass
class Served:
    """A slice on its server. ``log`` has ``(worker, version that its gradient was based on)`` of each that was used."""

    values: Parameter
    workers: Workers
    optimizer: torch.optim.Optimizer
    version: int = 0
    total: Tensor | None = None  # of the gradients that came since the last version
    came: int = 0
    waiting: list[int] = field(default_factory=list)  # workers without an answer yet
    pushes: dict[int, int] = field(default_factory=dict)  # of each worker
    log: list[tuple[int, int]] = field(default_factory=list)

    def step(self, gradient: Tensor) -> None:
        """Make a new version."""
        self.values.grad = gradient
        self.optimizer.step()  # of this slice alone: no other has a gradient
        self.values.grad = None
        self.version += 1


class Rule(ABC):
    """When a new version is made, and who gets it."""

    dropped = 0  # gradients that came too late to be used
    may_lose: float  # so many workers may be lost, and training goes on

    @abstractmethod
    def pushed(self, served: Served, worker: int, based_on: int, gradient: Tensor) -> list[int]:
        """Take in a gradient. Returns the workers that get an answer now."""

    @abstractmethod
    def released(self, served: Served) -> list[int]:
        """Those ``waiting`` that get an answer now, also because another worker has left."""


@dataclass
class Synchronous(Rule):
    """A version needs a gradient of each worker but ``backup`` ones, and its step takes their mean.

    The gradients of the slowest ``backup`` workers come too late, are dropped, and these workers go on with the newest
    version: Chen et al., "Revisiting distributed synchronous SGD" (2016). A worker that has ended its training is not
    waited for. Raises ValueError for a negative number.
    """

    backup: int = 0

    def __post_init__(self) -> None:
        if not is_whole(self.backup) or not self.backup >= 0:
            raise ValueError(f"backup is {self.backup!r}; give the number of workers not waited for, 0 or more")
        self.may_lose = self.backup

    def pushed(self, served: Served, worker: int, based_on: int, gradient: Tensor) -> list[int]:
        if based_on < served.version:
            self.dropped += 1
            return [worker]
        wide = torch.promote_types(gradient.dtype, torch.float32)  # a sum of float16 could overflow
        served.total = gradient.to(wide, copy=True) if served.total is None else served.total.add_(gradient)
        served.came += 1
        served.waiting.append(worker)
        served.log.append((worker, based_on))
        return self.released(served)

    def released(self, served: Served) -> list[int]:
        if served.came < max(1, min(served.workers.number - self.backup, len(served.workers.live))):
            return []
        assert served.total is not None  # of at least one
        served.step(served.total.div_(served.came).to(served.values.dtype))
        served.total, served.came = None, 0
        answered, served.waiting = served.waiting, []
        return answered


@dataclass
class BoundedStaleness(Rule):
    """Each gradient makes a version at once, with the weight 1/workers: asynchronous training.

    A worker waits when it has pushed over ``bound`` times more than the slowest one; with infinity nobody ever waits.
    Ho et al., "More effective distributed ML via a stale synchronous parallel parameter server", NIPS 2013; without a
    bound Dean et al., "Large scale distributed deep networks", NIPS 2012. Raises ValueError for a bound below 0.
    """

    bound: float = math.inf

    def __post_init__(self) -> None:
        if not is_number(self.bound) or not self.bound >= 0:
            raise ValueError(
                f"bound is {self.bound!r}; give the number of steps that a worker may be ahead of the slowest: 0 or "
                "more, math.inf for no bound"
            )
        self.may_lose = math.inf

    def pushed(self, served: Served, worker: int, based_on: int, gradient: Tensor) -> list[int]:
        served.step(gradient / served.workers.number)
        served.log.append((worker, based_on))
        served.pushes[worker] = served.pushes.get(worker, 0) + 1
        served.waiting.append(worker)
        return self.released(served)

    def released(self, served: Served) -> list[int]:
        slowest = min((served.pushes.get(worker, 0) for worker in served.workers.live), default=0)
        answered = [worker for worker in served.waiting if served.pushes[worker] - slowest <= self.bound]
        served.waiting = [worker for worker in served.waiting if worker not in answered]
        return answered
