"""A parameter server: workers push gradients to the ranks that serve, and pull the parameters back.

Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014. A push does what a reduce does,
a pull what a broadcast does, but one worker at a time, so that no worker needs to wait for the others: the ``rule``
says when it does. The parameters, end to end, are cut into slices, and each server keeps its share of them.
"""

import threading
from collections.abc import Callable, Iterable
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
from ringzero.unsynced.line import Head, Line, through_the_host
from ringzero.unsynced.serving import SLICE_BYTES, Rule, Server, Synchronous, cut

PUSH, LEAVE, PULL, END, MISSING, FAILED = range(6)  # kinds of messages: two to a server, four to a worker
AHEAD = -1  # the priority of what must not wait behind slices
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
        self._first_needed_first = first_needed_first
        self.trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
        _check_types(self.trained)
        check_alike(module, (), ranks_of)
        broadcast_state([*module.parameters(), *module.buffers()], 0, ranks_of)
        self.rank, self.group = ranks_of.rank(), through_the_host(ranks_of)
        self.servers, self.workers = range(servers), range(servers if dedicated else 0, ranks_of.size())
        self._folder = Path(folder) if folder is not None else None
        self._lay_out(slice_bytes)
        self._changed = threading.Condition()  # of what follows, which other threads write to
        self._on_the_way: set[int] = set()  # slices that were pushed and have not come back
        self._versions = [0] * len(self.slices)
        self._ended: set[int] = set()  # servers that have sent their last parameters
        self._why_not: str | None = None  # training cannot go on
        self._cause: Exception | None = None  # this rank's own failure
        self.server = None
        if self.rank in self.servers:
            self.server = self._make_server(partial(optimizer, **options), save_every, resume)
        if resume:
            self._share_what_was_saved()
        longest = max(stop - start for _, _, start, stop in self.slices)
        self._lines = {
            peer: Line(
                peer,
                self.group,
                longest,
                self._values.dtype,
                partial(self._deal_with, peer),
                partial(self._lost, peer),
                self._failed,
            )
            for peer in range(ranks_of.size())
            if peer != self.rank and (peer in self.servers or self.rank in self.servers)
        }
        for line in self._lines.values():
            line.open()
        self._hooks: list[RemovableHandle] = []  # on the module, until the training is over
        if overlap:
            self._hook()

    def _lay_out(self, slice_bytes: float) -> None:
        """Say which elements each parameter and each slice has."""
        self._values = torch.cat([p.detach().flatten().cpu() for p in self.trained.values()])
        self._gradient = torch.empty_like(self._values)
        self.slices = cut(len(self._values), self._values.element_size(), len(self.servers), slice_bytes)
        self._places, stop = {}, 0
        for parameter in self.trained.values():
            start, stop = stop, stop + parameter.numel()
            touched = [each.number for each in self.slices if each.start < stop and start < each.stop]
            self._places[parameter] = start, stop, touched
        self._expect_gradients()
        self._old: set[Parameter] = set()  # their new values are not in the module yet

    def _expect_gradients(self) -> None:
        self._unpushed = {each.number: set[Parameter]() for each in self.slices}  # and the gradients that they wait for
        for parameter, (_, _, touched) in self._places.items():
            for number in touched:
                self._unpushed[number].add(parameter)

    # ---- what a training program calls

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def step(self) -> None:
        """Push what was not pushed in the backward pass. Without ``overlap`` also wait for the parameters."""
        waiting = set().union(*self._unpushed.values())
        if missing := [name for name, p in self.trained.items() if p in waiting and p.grad is None]:
            raise RuntimeError(f"no gradient for {', '.join(missing)}; freeze what the loss does not depend on")
        for parameter in reversed(self.trained.values()):
            if parameter in waiting:
                self._put(parameter)
        self._expect_gradients()
        if not self.overlap:
            self.wait()

    def wait(self) -> None:
        """Have the newest parameters that this worker may have in the module."""
        self._take(self.trained.values())

    def finish(self) -> None:
        """End the training of this worker; returns when all have ended. Every rank has the same parameters then."""
        self.wait()
        for server in self.servers:
            self._send(server, (LEAVE, 0, 0))
        self._wait_until(lambda: self._ended.issuperset(self.servers))
        self._old.update(self.trained.values())
        self.wait()
        self._close()

    def serve(self) -> None:
        """On a dedicated server: serve until all workers have ended, and take on the last parameters of all servers."""
        assert self.server is not None
        self._wait_until(lambda: self._ended.issuperset(self.servers))
        self._old.update(self.trained.values())
        self.wait()
        self._close()

    def _close(self) -> None:
        while self._hooks:  # the module is the program's again
            self._hooks.pop().remove()
        for line in self._lines.values():
            line.close()
        dist.destroy_process_group(self.group)

    # ---- gradients out, parameters in

    def _put(self, parameter: Parameter) -> None:
        """Take in ``parameter.grad``, and push the slices that are complete now."""
        start, stop, touched = self._places[parameter]
        gradient = parameter.grad
        assert gradient is not None
        if gradient.is_sparse:
            name = next(name for name, p in self.trained.items() if p is parameter)
            raise ValueError(f"the gradient of {name} is sparse; a parameter server needs dense ones: sparse=False")
        self._gradient[start:stop].copy_(gradient.detach().flatten())
        for number in reversed(touched):
            if parameter not in self._unpushed.get(number, ()):
                raise RuntimeError(
                    "a second backward pass before step(): with overlap=True the first one's gradients have left; "
                    "to add up gradients take overlap=False"
                )
            self._unpushed[number].remove(parameter)
            if not self._unpushed[number]:
                self._push(number)

    def _push(self, number: int) -> None:
        each = self.slices[number]
        with self._changed:
            self._on_the_way.add(number)
        self._old.update(p for p, (_, _, touched) in self._places.items() if number in touched)
        head = PUSH, number, self._versions[number]
        self._send(each.server, head, self._gradient[each.start : each.stop], self._priority(number))

    def _priority(self, number: int) -> int:
        return number if self._first_needed_first else 0

    def _take(self, parameters: Iterable[Parameter]) -> None:
        """Wait for the new values of the ``parameters``, and put them into the module."""
        old = [parameter for parameter in parameters if parameter in self._old]
        needed = {number for parameter in old for number in self._places[parameter][2]}
        self._wait_until(lambda: not needed & self._on_the_way)
        for parameter in old:
            start, stop, _ = self._places[parameter]
            parameter.data.copy_(self._values[start:stop].view(parameter.shape))
        self._old.difference_update(old)

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._why_not or condition())
        if self._why_not:
            raise RuntimeError(self._why_not) from self._cause

    def _hook(self) -> None:
        self._hooks += [p.register_post_accumulate_grad_hook(self._put) for p in self.trained.values()]
        for each in self.module.modules():
            own = [parameter for parameter in each.parameters(recurse=False) if parameter in self._places]
            if own:
                self._hooks.append(each.register_forward_pre_hook(lambda *_, own=own: self._take(own)))

    # ---- messages

    def _send(self, peer: int, head: Head, payload: Tensor | None = None, priority: float = AHEAD) -> None:
        if peer == self.rank:
            try:
                self._deal_with(peer, head, NOTHING if payload is None else payload)
            except Exception as error:
                self._failed(error)
        else:
            self._lines[peer].send(head, payload, priority)

    def _place(self, number: int) -> Tensor:
        return self._values[self.slices[number].start : self.slices[number].stop]

    def _deal_with(self, peer: int, head: Head, payload: Tensor) -> None:
        kind, number, version = head
        if kind == PUSH:
            assert self.server is not None
            self.server.pushed(peer, number, version, payload[: len(self._place(number))])
            return
        if kind == LEAVE:
            assert self.server is not None
            self.server.left(peer, lost=False)
            return
        with self._changed:
            if kind == PULL:
                place = self._place(number)
                place.copy_(payload[: len(place)])
                self._versions[number] = version
                self._on_the_way.discard(number)
            elif kind == END:
                self._ended.add(peer)
            elif kind == FAILED:
                self._why_not = self._why_not or f"server {number} failed; its own error says why. {self._last_state()}"
            else:
                self._why_not = (
                    f"worker {number} is gone, and {self.rule} cannot go on without its gradients; "
                    f"BoundedStaleness() can. {self._last_state()}"
                )
            self._changed.notify_all()

    def _lost(self, peer: int, error: Exception) -> None:
        if self.server is not None:
            self.server.left(peer, lost=True)
        if peer in self.servers and peer not in self._ended:
            with self._changed:
                self._why_not = (
                    f"server {peer} is gone with its share of the parameters. {self._last_state()} ({error})"
                )
                self._changed.notify_all()

    def _failed(self, error: Exception) -> None:
        """This rank's server raised, or what it runs: the optimizer, the saving to disk."""
        with self._changed:
            self._why_not = f"the server on rank {self.rank} failed: {type(error).__name__}: {error}"
            self._cause = error
            self._changed.notify_all()
        for worker in self.workers:
            self._send(worker, (FAILED, self.rank, 0))

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
        mine = [each for each in self.slices if each.server == self.rank]
        server = Server(mine, self._values, optimizer, self.rule, self.workers, self, file, save_every)
        if resume:
            assert file is not None
            server.load(torch.load(file, weights_only=True))
        return server

    def answer(self, worker: int, number: int, version: int, values: Tensor) -> None:
        self._send(worker, (PULL, number, version), values, self._priority(number))

    def give_up(self, worker: int) -> None:
        for other in self.workers:
            self._send(other, (MISSING, worker, 0))

    def all_have_left(self) -> None:
        """All workers have left: everyone gets the last parameters."""
        assert self.server is not None
        others = {*self.workers, *self.servers} - {self.rank}
        for peer in (*others, self.rank):  # this rank last: it closes its lines then
            for number, served in self.server.served.items():
                self.answer(peer, number, served.version, served.values.detach())
            self._send(peer, (END, 0, 0), priority=len(self.slices))

    def _share_what_was_saved(self) -> None:
        versions = torch.tensor(self._versions, device="cpu")
        for number, server, start, stop in self.slices:
            if server == self.rank:
                assert self.server is not None
                served = self.server.served[number]
                self._values[start:stop], versions[number] = served.values.detach(), served.version
            for part in (self._values[start:stop], versions[number : number + 1]):
                dist.broadcast(part, group_src=server, group=self.group)
        self._versions = versions.tolist()
        self._old.update(self.trained.values())
        self.wait()


def _check(servers, dedicated, slice_bytes, save_every, folder, resume, size):
    most = size - dedicated
    if isinstance(servers, bool) or not isinstance(servers, int) or not 1 <= servers <= most:
        ranks = f"{size} ranks, of which one at least must train," if dedicated else f"{size} ranks"
        raise ValueError(f"servers is {servers!r}; with {ranks} it is 1 to {most}")
    if not is_number(slice_bytes) or not slice_bytes > 0:
        raise ValueError(f"slice_bytes is {slice_bytes!r}; give a positive number of bytes")
    if not is_whole(save_every) or save_every < 1:
        raise ValueError(f"save_every is {save_every!r}; give the versions between two saves, at least 1")
    if resume and folder is None:
        raise ValueError("resume=True needs the folder in which the servers saved; give folder=")


def _check_types(trained):
    if not trained:
        raise RuntimeError("no parameter requires a gradient: nothing to train")
    kinds = {}
    for name, parameter in trained.items():
        kinds.setdefault(parameter.dtype, name)
    if len(kinds) > 1:
        (first, one), (second, other) = list(kinds.items())[:2]
        raise ValueError(f"{one} is {first} and {other} is {second}; a parameter server takes parameters of one type")
