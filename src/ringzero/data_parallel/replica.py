"""A replica: one rank's copy of the model, whose gradients are shared with the other ranks as they come."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.nn import Module, Parameter

from ringzero.collectives import event_threads
from ringzero.data_parallel.vector import Vector


class Replica(Module):
    """``module`` with a hook on each trained parameter. Subclasses say what to do when gradients are there.

    All ranks get rank 0's parameters and buffers. ``unused`` names parameters that never get a gradient. The
    ``state_dict`` is the module's own. Raises ValueError when there is nothing to train, ``unused`` names what is not
    there, or the ranks' modules differ: the first difference is named.

    ``module``   what was wrapped
    ``trained``  ``{name: parameter}`` of those that require a gradient and are not ``unused``; a tied one comes once
    ``group``    the process group whose ranks have the copies
    """

    hooks_in_no_sync = False  # whether gradients that no_sync keeps on this rank are announced too

    def __init__(self, module: Module, *, unused: Collection[str] = (), group: dist.ProcessGroup | None = None):
        super().__init__()
        self.module = module
        self.group = cast(dist.ProcessGroup, group or dist.group.WORLD)
        named = dict(module.named_parameters())
        if unknown := set(unused) - named.keys():
            raise ValueError(f"unused has {sorted(unknown)}; the module's parameters are {', '.join(named)}")
        self.trained = {name: p for name, p in named.items() if p.requires_grad and name not in unused}
        if not self.trained:
            raise ValueError(f"{type(module).__name__} has no parameter that requires a gradient: nothing to train")
        check_alike(module, self.group)
        broadcast_state(module, 0, self.group)
        event_threads.calm()  # so that all-reduces of the backend's own, too, hinder the backward pass less
        self._names = {parameter: name for name, parameter in self.trained.items()}
        self._syncing = True
        self._backward: int | None = None  # the backward pass that hooks were called in last
        for parameter in self.trained.values():
            parameter.register_post_accumulate_grad_hook(self._hook)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """That of the module, as if it were not wrapped."""
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Of the module, as if it were not wrapped."""
        return self.module.load_state_dict(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes inside only add gradients up on this rank; the next one outside synchronises the sum."""
        before, self._syncing = self._syncing, False
        try:
            yield
        finally:
            self._syncing = before

    def _hook(self, parameter: Parameter) -> None:  # autograd calls it when parameter.grad is complete
        if self._syncing or self.hooks_in_no_sync:
            if self._backward != (this_one := torch._C._current_graph_task_id()):
                self._backward = this_one
                self.backward_begins()
                torch.autograd.Variable._execution_engine.queue_callback(self.backward_over)
            self.gradient_ready(parameter)

    def backward_begins(self) -> None:
        """Called before the first ``gradient_ready`` of a backward pass."""

    def gradient_ready(self, parameter: Parameter) -> None:
        """Called during the backward pass, as soon as ``parameter.grad`` is complete."""

    def backward_over(self) -> None:
        """Called at the end of a backward pass, before ``loss.backward()`` returns."""

    def _vector(self, parameters: Iterable[Parameter]) -> Vector:
        return Vector({self._names[p]: p for p in parameters}, self.group.size())


def broadcast_state(module: Module, root: int, group: dist.ProcessGroup) -> None:
    """Give every rank the parameters and buffers of rank ``root`` of the group."""
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), group_src=root, group=group)


def check_alike(module: Module, group: dist.ProcessGroup) -> None:
    """Raise ValueError, on every rank, naming the first parameter or buffer in which a rank differs from rank 0."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    mine = [f"{name}: {tuple(t.shape)} {t.dtype}{' trained' * t.requires_grad}" for name, t in tensors]
    everyone: list[list[str]] = [[]] * group.size()
    dist.all_gather_object(everyone, mine, group=group)
    for rank, theirs in enumerate(everyone):
        for first, other in zip_longest(everyone[0], theirs, fillvalue="nothing more"):
            if first != other:
                raise ValueError(f"the ranks' modules differ: rank 0 has {first}, rank {rank} has {other}")
