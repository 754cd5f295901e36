"""Asynchronous gossip: a rank averages its model with one other whenever it wants to, and nobody waits for a round.

Lian et al., "Asynchronous decentralized parallel stochastic gradient descent" (AD-PSGD), ICML 2018. Even ranks ask and
odd ranks answer: if all asked, ranks could wait for one another in a cycle. A rank that asks sends its model x_i to a
partner drawn at random. The partner replaces its own x_j by (x_i + x_j) / 2, in one indivisible step, and sends that
back. Meanwhile both compute gradients, which are then added to the averaged models. So gradients are stale, and a slow
rank slows nobody else down.
"""

import random
import threading
from collections.abc import Callable
from functools import partial
from typing import cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Module

from ringzero.unsynced.end_to_end import joined, write_back
from ringzero.unsynced.line import Head, Line, through_the_host
from ringzero.unsynced.own_copy import OwnCopy

ASK, ANSWER, DONE = range(3)  # kinds of messages


class Pairwise(OwnCopy):
    """AD-PSGD: ``module`` and ``optimizer`` as in ``OwnCopy``; after a step an even rank asks a random odd one.

    An average sends the model, as fp32 and with a head of 24 bytes, once in each direction. Messages travel through the
    host's memory, by gloo. ``finish()`` must be called: odd ranks answer until the last even rank has ended.

    ``averages``  how many this rank took part in
    ``lost``      ranks that this rank has found to be gone; training goes on without them, also over NCCL, but the mean
                  model and ``consensus_distance()`` need all ranks

    The same draw of partners for the same ``seed``. Raises ValueError as ``OwnCopy``, and for float64 parameters.
    """

    def __init__(self, module: Module, optimizer: torch.optim.Optimizer, *, seed: int = 0,
                 group: dist.ProcessGroup | None = None):  # fmt: skip
        super().__init__(module, optimizer, group, seed=seed)
        if wide := [name for name, p in self.trained.items() if p.dtype == torch.float64]:
            raise ValueError(f"{', '.join(wide)}: float64, and models travel as float32; call module.float()")
        rank = self.group.rank()
        self._asks, self._draw = rank % 2 == 0, random.Random(f"{seed} {rank}")
        self._partners = {other for other in range(self.group.size()) if other % 2 != rank % 2}
        self.lost, self.averages = set[int](), 0
        self._values = self._read()  # other threads write to it
        self._loaded = self._values.clone()  # what the module had before this step's gradient
        self._changed = threading.Condition()
        self._asked: int | None = None  # the partner that has not answered yet
        self._failed: Exception | None = None  # this rank could not deal with a message
        self._have_ended = set[int]()
        host = through_the_host(cast(dist.ProcessGroup, group or dist.group.WORLD))
        self._lines = {
            other: Line(other, host, len(self._values), torch.float32, partial(self._arrived, other),
                        partial(self._lose, other), self._fail)
            for other in self._partners
        }  # fmt: skip
        for line in self._lines.values():
            line.open()

    def step(self) -> None:
        super().step()
        self.optimizer.step()
        with self._changed:
            self._wait_until(lambda: self._asked is None)
            self._values += self._read() - self._loaded
            self._load()
            if self._asks and (partners := sorted(self._partners - self.lost)):
                self._asked = self._draw.choice(partners)
                self._lines[self._asked].send((ASK, 0, 0), self._values)

    def finish(self) -> None:
        with self._changed:
            self._wait_until(lambda: self._asked is None)
        if self._asks:
            for line in self._lines.values():
                line.send((DONE, 0, 0))
        else:
            with self._changed:
                self._wait_until(lambda: self._partners == self._have_ended | self.lost)
        for line in self._lines.values():
            line.close()
        self._load()

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        self._changed.wait_for(lambda: self._failed or condition())
        if self._failed:
            raise self._failed

    # ---- messages

    def _arrived(self, other: int, head: Head, payload: Tensor) -> None:
        with self._changed:
            if head[0] == DONE:
                self._have_ended.add(other)
            elif head[0] == ANSWER:
                self._values.copy_(payload)
                self._asked = None
                self.averages += 1
            else:
                self._values.add_(payload).div_(2)
                self._lines[other].send((ANSWER, 0, 0), self._values)
                self.averages += 1
            self._changed.notify_all()

    def _lose(self, other: int, error: Exception) -> None:
        with self._changed:
            self.lost.add(other)
            if self._asked == other:
                self._asked = None
            self._changed.notify_all()

    def _fail(self, error: Exception) -> None:
        with self._changed:
            self._failed = error
            self._changed.notify_all()

    # ---- the model, end to end

    def _read(self) -> Tensor:
        return joined(self.trained.values(), torch.float32, "cpu")

    def _load(self) -> None:
        """Have ``_values`` in the module."""
        self._loaded.copy_(self._values)
        write_back(self._values, list(self.trained.values()))
