"""The server's side of a parameter server: its slices of the parameters, their optimizer, and what it tells workers."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from ringzero.processes import durable
from ringzero.unsynced.rules import Rule, Served, Workers
from ringzero.unsynced.slices import Slice

PUSH, LEAVE, PULL, END, MISSING, FAILED = range(6)  # kinds of messages: two to a server, four to a worker


class Server:
    """Keeps ``slices`` of the parameters, which it copies from ``values``, and their ``optimizer``.

    ``workers``  ranks that push; ``everyone``, ranks that get the last values, in this order
    ``send(rank, head, payload)``  sends a message; ``payload`` is left out where there is none
    ``file``     where the state is saved after every ``save_every`` versions; None for nowhere
    ``served``   ``{number of the slice: Served}``
    """

    def __init__(
        self,
        slices: list[Slice],
        values: Tensor,
        optimizer: Callable[[list[Parameter]], torch.optim.Optimizer],
        rule: Rule,
        workers: list[int],
        everyone: list[int],
        send: Callable[..., None],
        file: Path | None,
        save_every: int,
    ):
        parameters = [Parameter(values[each.start : each.stop].clone()) for each in slices]
        self.optimizer = optimizer(parameters)
        self._workers, self._everyone, self._send = Workers(len(workers), set(workers)), everyone, send
        self.served = {
            each.number: Served(parameter, self._workers, self.optimizer)
            for each, parameter in zip(slices, parameters, strict=True)
        }
        self._first = next(iter(self.served.values()))  # its version says when to save
        self.rule, self._lost = rule, 0
        self._file, self._save_every, self._saved = file, save_every, 0
        self._lock = threading.Lock()  # messages of different workers come in different threads

    def pushed(self, worker: int, number: int, based_on: int, gradient: Tensor) -> None:
        """A worker's gradient of a slice came."""
        with self._lock:
            self._answer(self.rule.pushed(self.served[number], worker, based_on, gradient), number)

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
                for other in self._everyone:
                    self._send(other, (MISSING, worker, 0))
                return
            for number, served in self.served.items():
                served.waiting = [each for each in served.waiting if each != worker]
                self._answer(self.rule.released(served), number)
            if not self._workers.live:
                self._send_all()
                for rank in self._everyone:
                    self._send(rank, (END, 0, 0))

    def send_everything(self) -> None:
        """Send everyone the newest values of all slices."""
        with self._lock:
            self._send_all()

    def _send_all(self) -> None:
        for rank in self._everyone:
            for number in self.served:
                self._send_values(rank, number)

    def _answer(self, workers: list[int], number: int) -> None:
        """Save, if it is time, and send these workers the newest values of a slice."""
        version = self._first.version
        if self._file is not None and version != self._saved and version % self._save_every == 0:
            self.save()
        for worker in workers:
            self._send_values(worker, number)

    def _send_values(self, rank: int, number: int) -> None:
        served = self.served[number]
        self._send(rank, (PULL, number, served.version), served.values.detach())

    # ---- what is saved

    def state(self) -> dict[str, Any]:
        """Values and versions of the slices, and the optimizer's state."""
        return {
            "values": {number: served.values.detach() for number, served in self.served.items()},
            "versions": {number: served.version for number, served in self.served.items()},
            "optimizer": self.optimizer.state_dict(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take on what ``state`` returned. Raises ValueError for other slices."""
        mine = {number: served.values.shape for number, served in self.served.items()}
        theirs = {number: values.shape for number, values in state["values"].items()}
        if mine != theirs:
            raise ValueError(
                f"the file has {len(theirs)} slices and this server {len(mine)}, or of other sizes; give the same "
                "model, number of servers and slice_bytes as when it was saved"
            )
        for number, served in self.served.items():
            served.values.data.copy_(state["values"][number])
            served.version = state["versions"][number]
        self._saved = self._first.version
        self.optimizer.load_state_dict(state["optimizer"])

    def save(self) -> None:
        """Write the state so that the file is always whole: the old one or the new one."""
        assert self._file is not None
        with durable.replacing(self._file) as unfinished:
            torch.save(self.state(), unfinished)
        self._saved = self._first.version
