"""The server's side of a parameter server: slices of the parameters, and when a worker gets them back.

A worker pushes the gradient of a slice and says on which version of it the gradient is based. The ``Rule`` decides when
a new version is made, and whether the worker has its answer at once or waits for others.
"""

import math
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import Parameter

from ringzero.collectives.schedule import is_number, is_whole

SLICE_BYTES = 256 * 1024


class Slice(NamedTuple):
    """Elements ``start`` to ``stop`` of all trained parameters end to end, which ``server`` keeps."""

    number: int
    server: int
    start: int
    stop: int


def cut(elements: int, element_bytes: int, servers: int, slice_bytes: float) -> list[Slice]:
    """Slices of at most ``slice_bytes``, handed to the servers in turn; at least one for each server."""
    longest = max(1, math.floor(min(slice_bytes / element_bytes, math.ceil(elements / servers))))
    starts = range(0, elements, longest)
    return [Slice(i, i % servers, start, min(start + longest, elements)) for i, start in enumerate(starts)]


@dataclass
class Served:
    """A slice on its server. ``log`` has ``(worker, version that its gradient was based on)`` of each that was used."""

    values: Parameter
    version: int = 0
    total: Tensor | None = None  # of the gradients that came since the last version
    came: int = 0
    waiting: list[int] = field(default_factory=list)  # workers without an answer yet
    pushes: dict[int, int] = field(default_factory=dict)  # of each worker
    log: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Workers:
    """``number`` that began, and those of them that still push."""

    number: int
    live: set[int]


Apply = Callable[[Served, Tensor], None]  # makes a new version by a step with a gradient


class Rule(ABC):
    """When a new version is made, and who gets it."""

    dropped = 0  # gradients that came too late to be used
    may_lose: float  # so many workers may be lost, and training goes on

    @abstractmethod
    def pushed(
        self, served: Served, worker: int, based_on: int, gradient: Tensor, workers: Workers, apply: Apply
    ) -> list[int]:
        """Take in a gradient. Returns the workers that get an answer now."""

    @abstractmethod
    def released(self, served: Served, workers: Workers, apply: Apply) -> list[int]:
        """Those ``waiting`` that get an answer now, because another worker has left."""


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

    def pushed(
        self, served: Served, worker: int, based_on: int, gradient: Tensor, workers: Workers, apply: Apply
    ) -> list[int]:
        if based_on < served.version:
            self.dropped += 1
            return [worker]
        wide = torch.promote_types(gradient.dtype, torch.float32)  # a sum of float16 could overflow
        served.total = gradient.to(wide, copy=True) if served.total is None else served.total.add_(gradient)
        served.came += 1
        served.waiting.append(worker)
        served.log.append((worker, based_on))
        return self.released(served, workers, apply)

    def released(self, served: Served, workers: Workers, apply: Apply) -> list[int]:
        if served.came < max(1, min(workers.number - self.backup, len(workers.live))):
            return []
        assert served.total is not None  # of at least one
        apply(served, served.total.div_(served.came).to(served.values.dtype))
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

    def pushed(
        self, served: Served, worker: int, based_on: int, gradient: Tensor, workers: Workers, apply: Apply
    ) -> list[int]:
        apply(served, gradient / workers.number)
        served.log.append((worker, based_on))
        served.pushes[worker] = served.pushes.get(worker, 0) + 1
        served.waiting.append(worker)
        return self.released(served, workers, apply)

    def released(self, served: Served, workers: Workers, apply: Apply) -> list[int]:
        slowest = min((served.pushes.get(worker, 0) for worker in workers.live), default=0)
        answered = [worker for worker in served.waiting if served.pushes[worker] - slowest <= self.bound]
        served.waiting = [worker for worker in served.waiting if worker not in answered]
        return answered


class Clients(Protocol):
    """What a server says, and to whom."""

    def answer(self, worker: int, number: int, version: int, values: Tensor) -> None:
        """Here is a slice."""

    def give_up(self, worker: int) -> None:
        """To all workers: training cannot go on without this one."""

    def all_have_left(self) -> None:
        """To everyone: these are the last parameters."""


class Server:
    """Keeps ``slices`` of the parameters, which it copies from ``values``, and their ``optimizer``.

    ``file``    where both are saved after every ``save_every`` versions; None for nowhere
    ``served``  ``{number of the slice: Served}``
    """

    def __init__(
        self,
        slices: list[Slice],
        values: Tensor,
        optimizer: Callable[[list[Parameter]], torch.optim.Optimizer],
        rule: Rule,
        workers: Collection[int],
        clients: Clients,
        file: Path | None,
        save_every: int,
    ):
        self.served = {each.number: Served(Parameter(values[each.start : each.stop].clone())) for each in slices}
        self.optimizer = optimizer([served.values for served in self.served.values()])
        self.rule, self._workers = rule, Workers(len(workers), set(workers))
        self._lost = 0
        self._clients = clients
        self._file, self._save_every = file, save_every
        self._lock = threading.Lock()  # messages of different workers come in different threads

    def pushed(self, worker: int, number: int, based_on: int, gradient: Tensor) -> None:
        """A worker's gradient of a slice came."""
        with self._lock:
            served = self.served[number]
            self._to(self.rule.pushed(served, worker, based_on, gradient, self._workers, self._apply), number, served)

    def left(self, worker: int, lost: bool) -> None:
        """A worker will push no more: it has ended its training, or it is ``lost``.

        Where the others wait for it, they go on, or are told that they cannot.
        """
        with self._lock:
            if worker not in self._workers.live:
                return
            self._workers.live.remove(worker)
            self._lost += lost
            if self._lost > self.rule.may_lose:
                self._clients.give_up(worker)
                return
            for number, served in self.served.items():
                served.waiting = [each for each in served.waiting if each != worker]
                self._to(self.rule.released(served, self._workers, self._apply), number, served)
            if not self._workers.live:
                self._clients.all_have_left()

    def _to(self, workers: list[int], number: int, served: Served) -> None:
        for worker in workers:
            self._clients.answer(worker, number, served.version, served.values.detach())

    def _apply(self, served: Served, gradient: Tensor) -> None:
        served.values.grad = gradient
        self.optimizer.step()  # of this slice alone: no other has a gradient
        served.values.grad = None
        served.version += 1
        first = next(iter(self.served.values()))
        if self._file is not None and served is first and served.version % self._save_every == 0:
            self.save()

    def state(self) -> dict:
        """Values and versions of the slices, and the optimizer's state."""
        return {
            "values": {number: served.values.detach() for number, served in self.served.items()},
            "versions": {number: served.version for number, served in self.served.items()},
            "optimizer": self.optimizer.state_dict(),
        }

    def load(self, state: dict) -> None:
        """Take on what ``state`` returned. Raises ValueError for other slices."""
        mine = {number: served.values.shape for number, served in self.served.items()}
        theirs = {number: values.shape for number, values in state["values"].items()}
        if mine != theirs:
            raise ValueError(f"the file has {len(theirs)} slices and this server {len(mine)}, or of other sizes; give "
                             "the same model, number of servers and slice_bytes as when it was saved")  # fmt: skip
        for number, served in self.served.items():
            served.values.data.copy_(state["values"][number])
            served.version = state["versions"][number]
        self.optimizer.load_state_dict(state["optimizer"])

    def save(self) -> None:
        """Write so that the file is always whole: the old one or the new one."""
        assert self._file is not None
        unfinished = self._file.with_suffix(".unfinished")
        with open(unfinished, "wb") as file:
            torch.save(self.state(), file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self._file)
