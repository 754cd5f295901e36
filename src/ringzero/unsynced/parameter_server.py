"""A parameter server: workers push gradients to the ranks that serve, and pull the parameters back.

Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014. A push does what a reduce does,
a pull what a broadcast does, but one worker at a time, so that no worker needs to wait for the others: the ``rule``
says when it does. The parameters, end to end, are cut into slices, and each server keeps its share of them.
"""

import math
import threading
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Module, Parameter
from torch.utils.hooks import RemovableHandle

from ringzero.collectives.schedule import is_number, is_whole
from ringzero.data_parallel.alike import broadcast_state, check_alike
from ringzero.unsynced.end_to_end import check_one_type, gradients_of
from ringzero.unsynced.line import Head, Line, through_the_host
from ringzero.unsynced.rules import Rule, Synchronous
from ringzero.unsynced.serving import END, FAILED, LEAVE, PULL, PUSH, Server
from ringzero.unsynced.slices import SLICE_BYTES, Sliced

NOTHING = torch.empty(0, device="cpu")


class ParameterServer(Module):
    """``module``, trained by workers whose gradients go to servers; ``optimizer`` and its options step there.

    ``servers``      ranks 0 to ``servers`` - 1 keep a share of the parameters each
    ``dedicated``    whether these ranks only serve: they call ``serve()`` and do not train. Otherwise every rank is a
                     worker, and what it says to its own server crosses no network
    ``rule``         ``Synchronous(backup=0)``, or ``BoundedStaleness(bound)``: asynchronous training
    ``first_needed_first``  whether slices travel in the order in which the next forward pass needs them, and not in the
                     order in which the backward pass makes them: Jayarajan et al., "Priority-based parameter
                     propagation for distributed DNN training" (P3), MLSys 2019
    ``overlap``      push during the backward pass, which then runs once for each ``step()``; and let the next forward
                     pass begin with its first layers while parameters of later ones still travel. The module's own
                     tensors are old until its forward pass uses them, or until ``wait()``
    ``slice_bytes``  the longest slice
    ``folder``       where each server saves its share, after every ``save_every`` versions; with ``resume`` training
                     goes on from there

    All ranks must make it together. They start with rank 0's parameters and buffers; buffers are each worker's own from
    then on. Messages travel through the host's memory, by gloo, whatever the device. Use ``loss.backward()``,
    ``step()``, ``zero_grad()``, and at the end ``finish()`` on every worker.

    ``server`` is this rank's ``Server``, or None; its ``served`` have the logs of who pushed what.

    Raises ValueError for more servers than ranks, or for parameters of several types. ``step`` raises RuntimeError when
    training cannot go on: it says which worker is missing, or which server is gone.
    """

    def __init__(self, module: Module, optimizer: Callable[..., torch.optim.Optimizer], *, servers: int = 1,
                 dedicated: bool = False, rule: Rule | None = None, first_needed_first: bool = False,
                 overlap: bool = False, slice_bytes: float = SLICE_BYTES, folder: str | Path | None = None,
                 save_every: int = 100, resume: bool = False, group: dist.ProcessGroup | None = None,
                 **options: Any):  # fmt: skip
        super().__init__()
        ranks_of = group or dist.group.WORLD
        assert ranks_of is not None
        _check(servers, dedicated, slice_bytes, save_every, folder, resume, ranks_of.size())
        self.module, self.rule, self.overlap = module, rule or Synchronous(), overlap
        self.trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
        if not self.trained:
            raise RuntimeError("no parameter requires a gradient: nothing to train")
        check_one_type(self.trained)
        check_alike(module, (), ranks_of)
        broadcast_state([*module.parameters(), *module.buffers()], 0, ranks_of)
        self.rank, self.group = ranks_of.rank(), through_the_host(ranks_of)
        self.servers, self.workers = range(servers), range(servers if dedicated else 0, ranks_of.size())
        self._folder = Path(folder) if folder is not None else None
        self._first_needed_first = first_needed_first
        self._sliced = Sliced(self.trained, servers, slice_bytes)
        self._changed = threading.Condition()  # of what follows, which other threads write to
        every_slice = range(len(self._sliced.slices))
        self._on_the_way = set(every_slice if resume else ())  # slices that are to come
        self._versions = [0 for _ in every_slice]
        self._ended = set[int]()  # servers that have sent their last parameters
        self._why_not: str | None = None  # training cannot go on
        self._cause: Exception | None = None  # this rank's own failure
        is_server = self.rank in self.servers
        self.server = self._make_server(partial(optimizer, **options), save_every, resume) if is_server else None
        everyone = range(ranks_of.size())
        self._open_lines([peer for peer in everyone if peer != self.rank and (is_server or peer in self.servers)])
        if resume:
            if self.server is not None:
                self.server.send_everything()
            self._take_all()
        self._hooks = self._hook() if overlap else []  # on the module, until the training is over

    def _open_lines(self, peers: list[int]) -> None:
        longest, dtype = max(each.stop - each.start for each in self._sliced.slices), self._sliced.values.dtype
        self._lines = {
            peer: Line(peer, self.group, longest, dtype, partial(self._arrived, peer), partial(self._lost, peer),
                       self._failed)
            for peer in peers
        }  # fmt: skip
        for line in self._lines.values():
            line.open()

    # ---- what a training program calls

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def step(self) -> None:
        """Push what was not pushed in the backward pass. Without ``overlap`` also wait for the parameters."""
        if written := self._sliced.written():
            raise RuntimeError(
                f"{', '.join(written)} written to in the module since the ParameterServer was made, and the servers' "
                "values would take their place; load a state before you make it"
            )
        to_push = self._sliced.missing()
        gradients_of(to_push)  # raises where there is none
        for parameter in reversed(to_push.values()):
            self._take_gradient(parameter)
        self._sliced.expect_gradients()
        if not self.overlap:
            self.wait()

    def wait(self) -> None:
        """Have the newest parameters that this worker may have in the module."""
        self._update(self.trained.values())

    def finish(self) -> None:
        """End the training of this worker; returns when all have ended. Every rank has the same parameters then."""
        self.wait()
        for server in self.servers:
            self._send(server, (LEAVE, 0, 0))
        self.serve()

    def serve(self) -> None:
        """On a dedicated server: serve until all workers have ended, and take on the last parameters of all servers."""
        self._wait_until(lambda: self._ended.issuperset(self.servers))
        self._take_all()
        while self._hooks:  # the module is the program's again
            self._hooks.pop().remove()
        for line in self._lines.values():
            line.close()
        dist.destroy_process_group(self.group)

    def _take_all(self) -> None:
        """Have the values of all slices in the module, also of those that this worker did not push."""
        self._sliced.expect_values(range(len(self._sliced.slices)))
        self.wait()

    # ---- gradients out, parameters in

    def _take_gradient(self, parameter: Parameter) -> None:
        """Take in ``parameter.grad``, and push the slices that are complete now."""
        for number in self._sliced.take_gradient(parameter):
            with self._changed:
                self._on_the_way.add(number)
            self._sliced.expect_values([number])
            head = PUSH, number, self._versions[number]
            self._send(self._sliced.slices[number].server, head, self._sliced.part(number, self._sliced.gradient))

    def _update(self, parameters: Collection[Parameter]) -> None:
        """Wait for the new values of the ``parameters``, and bring them into the module."""
        expected = self._sliced.expected(parameters)
        self._wait_until(lambda: not expected & self._on_the_way)
        self._sliced.write_back(parameters)

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._why_not or condition())
        if self._why_not:
            raise RuntimeError(self._why_not) from self._cause

    def _hook(self) -> list[RemovableHandle]:
        hooks = [p.register_post_accumulate_grad_hook(self._take_gradient) for p in self.trained.values()]
        for each in self.module.modules():
            if own := [p for p in each.parameters(recurse=False) if p.requires_grad]:
                hooks.append(each.register_forward_pre_hook(lambda *_, own=own: self._update(own)))
        return hooks

    # ---- messages

    def _send(self, peer: int, head: Head, payload: Tensor | None = None) -> None:
        if peer == self.rank:
            try:
                self._arrived(peer, head, NOTHING if payload is None else payload)
            except Exception as error:
                self._failed(error)
        else:
            self._lines[peer].send(head, payload, self._priority(head))

    def _priority(self, head: Head) -> float:
        """Slices in their order, or as they come; before them what must not wait, after them that no more will come."""
        kind, number, _ = head
        if kind in (PUSH, PULL):
            return number if self._first_needed_first else 0
        return math.inf if kind == END else -1

    def _arrived(self, peer: int, head: Head, payload: Tensor) -> None:
        kind, number, version = head
        if kind in (PUSH, LEAVE):
            assert self.server is not None
            if kind == PUSH:
                gradient = payload[: len(self._sliced.part(number, self._sliced.gradient))]
                self.server.pushed(peer, number, version, gradient)
            else:
                self.server.left(peer, lost=False)
        elif kind == PULL:
            with self._changed:
                place = self._sliced.part(number, self._sliced.values)
                place.copy_(payload[: len(place)])
                self._versions[number] = version
                self._on_the_way.discard(number)
                self._changed.notify_all()
        elif kind == END:
            with self._changed:
                self._ended.add(peer)
                self._changed.notify_all()
        elif kind == FAILED:
            self._give_up(f"server {number} failed; its own error says why. {self._last_state()}")
        else:
            self._give_up(
                f"worker {number} is gone, and {self.rule} cannot go on without its gradients; BoundedStaleness() can. "
                f"{self._last_state()}"
            )

    def _lost(self, peer: int, error: Exception) -> None:
        if self.server is not None:
            self.server.left(peer, lost=True)
        if peer in self.servers and peer not in self._ended:
            self._give_up(f"server {peer} is gone with its share of the parameters. {self._last_state()} ({error})")

    def _failed(self, error: Exception) -> None:
        """This rank's server raised, or what it runs: the optimizer, the saving to disk."""
        self._give_up(f"the server on rank {self.rank} failed: {type(error).__name__}: {error}", error)
        for worker in self.workers:
            self._send(worker, (FAILED, self.rank, 0))

    def _give_up(self, why: str, cause: Exception | None = None) -> None:
        with self._changed:
            if self._why_not is None:  # what comes after the first reason follows from it
                self._why_not, self._cause = why, cause
            self._changed.notify_all()

    def _last_state(self) -> str:
        if self._folder is None:
            return "No folder was given, so nothing is on disk"
        return f"The last saved state is in {self._folder}; go on from there with resume=True"

    # ---- this rank's server

    def _make_server(self, optimizer: Callable[..., torch.optim.Optimizer], save_every: int, resume: bool) -> Server:
        file = None
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            file = self._folder / f"server-{self.rank}.pt"
        mine = [each for each in self._sliced.slices if each.server == self.rank]
        others = {*self.workers, *self.servers} - {self.rank}
        everyone = [*sorted(others), self.rank]  # this rank last: it closes its lines then
        server = Server(
            mine, self._sliced.values, optimizer, self.rule, list(self.workers), everyone, self._send, file, save_every
        )
        if resume:
            assert file is not None
            server.load(torch.load(file, weights_only=True))
        return server


def _check(servers, dedicated, slice_bytes, save_every, folder, resume, size):
    most = size - dedicated
    if not is_whole(servers) or not 1 <= servers <= most:
        ranks = f"{size} ranks, of which one at least must train," if dedicated else f"{size} ranks"
        raise ValueError(f"servers is {servers!r}; with {ranks} it is 1 to {most}")
    if not is_number(slice_bytes) or not slice_bytes > 0:
        raise ValueError(f"slice_bytes is {slice_bytes!r}; give a positive number of bytes")
    if not is_whole(save_every) or save_every < 1:
        raise ValueError(f"save_every is {save_every!r}; give the versions between two saves, at least 1")
    if resume and folder is None:
        raise ValueError("resume=True needs the folder in which the servers saved; give folder=")
