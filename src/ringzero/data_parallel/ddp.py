"""Data parallel: copies of one model, each rank with its part of the batch, the gradients averaged over ranks.

Copies that start equal and step with the mean of all ranks' gradients stay equal, as one rank with the whole batch.
Three ways of averaging: each gradient at once (``naive.py``), all of them at the end, or in buckets that leave while
the backward pass still makes the gradients of earlier layers (see ``in_order``). Li et al., "PyTorch Distributed",
VLDB 13 (2020).
"""

from collections.abc import Callable, Collection, Iterable
from math import inf

import torch
import torch.distributed as dist
from torch.nn import Module, Parameter

from ringzero.data_parallel import behind
from ringzero.data_parallel import join as joins
from ringzero.data_parallel.alike import broadcast_state
from ringzero.data_parallel.buckets import assign
from ringzero.data_parallel.in_order import InOrder, Wait, as_on_rank_0
from ringzero.data_parallel.replica import Replica
from ringzero.data_parallel.travel import CommunicationHook, Compressor, by_backend, by_compressor, by_hook, by_ringzero
from ringzero.data_parallel.vector import Vector


class FlatDataParallel(Replica):
    """All gradients of a type in one buffer and one all-reduce, which starts only after the backward pass."""

    def backward_over(self) -> None:
        super().backward_over()
        self.average()
        self.compare_weights()

    def average(self) -> None:
        for parameters in assign(self.trained.values(), inf, inf):
            vector = self._vector(parameters)
            for parameter in parameters:
                vector.put(parameter)
            self.marks.put(vector.gradient)
            dist.all_reduce(vector.gradient, group=self.group)
            self.marks.check(vector.gradient)
            vector.arrived()

    def abandon(self) -> None:
        self.average()

    def _buckets(self) -> list[list[Parameter]]:
        return assign(self.trained.values(), inf, inf)


class DistributedDataParallel(Replica):
    """``module``, its gradients averaged over ``group`` when ``loss.backward()`` returns.

    ``bucket_cap_mb``  MiB at which a bucket closes, as torch's does; the first one closes at 1
    ``algorithm``      one of ringzero's all-reduces by name, or None for the backend's own
    ``optimizer``      to step inside ``backward``, for each bucket as soon as its gradients are there, so one that
                       treats each parameter on its own; no gradients are left after it, so they cannot be clipped
    ``find_unused``    parameters may go without a gradient; otherwise that is a RuntimeError, which names them
    ``unused``         names of parameters that never get one
    ``broadcast_buffers``  whether rank 0's buffers are everyone's before each forward pass that trains
    ``compressor``     another way to the mean than an all-reduce, such as ``unsynced.compression.TopK(0.01)``

    ``buckets()`` are the vectors of gradients that travel together, in the order in which they leave.

    Raises ValueError for a ``bucket_cap_mb`` that is not positive, and for a ``compressor`` beside an ``algorithm`` or,
    if it keeps errors, beside ``find_unused``; TypeError for what is no compressor; and as ``Replica`` does.
    """

    def __init__(self, module: Module, bucket_cap_mb: float = 25, algorithm: str | None = None,
                 optimizer: torch.optim.Optimizer | None = None, find_unused: bool = False,
                 unused: Collection[str] = (), broadcast_buffers: bool = True,
                 group: dist.ProcessGroup | None = None, compressor: Compressor | None = None):  # fmt: skip
        if not bucket_cap_mb > 0:
            raise ValueError(f"bucket_cap_mb is {bucket_cap_mb!r}; give a positive number of MiB")
        if compressor is not None:
            _check(compressor, algorithm, find_unused)
        if optimizer is not None:
            _check_steps_nothing_else(optimizer, module)
        super().__init__(module, unused=unused, broadcast_buffers=broadcast_buffers, group=group)
        self.bucket_cap_mb, self.algorithm, self.optimizer = bucket_cap_mb, algorithm, optimizer
        self.find_unused, self.compressor = find_unused, compressor
        self._with_data, self._is_sum = self.group.size(), compressor is None  # or a mean, and not an exact one
        self._travel = by_backend(self.group) if algorithm is None else by_ringzero(algorithm, self.group)
        last_layer_first = reversed(self.trained.values())  # as gradients come
        self._in_order = InOrder(
            self.trained, self._cut(last_layer_first), self._start, self._cut_as_rank_0, find_unused
        )
        if compressor is not None:
            self._travel = by_compressor(compressor, self.group, lambda: self._with_data, self._in_order)

    def buckets(self) -> list[Vector]:
        """In the order in which they leave. It waits, after the first pass, to learn that order from rank 0."""
        return self._in_order.vectors()

    def _cut(self, parameters: Iterable[Parameter]) -> list[Vector]:
        buckets = [self._vector(members) for members in assign(parameters, self.bucket_cap_mb)]
        for bucket in buckets:
            bucket.hold_gradient()
            bucket.ranks = self._divisor
        return buckets

    @property
    def _divisor(self) -> int:
        """By what gradients are divided before they leave: hooks and compressors do that themselves."""
        return self._with_data if self._is_sum else 1

    def _cut_as_rank_0(self, came: list[Parameter]) -> Callable[[], list[Vector]]:
        """New buckets, in the order in which rank 0's gradients came."""
        parameters = list(self.trained.values())
        places = {parameter: place for place, parameter in enumerate(parameters)}
        order = as_on_rank_0([places[parameter] for parameter in came], self.group, self.trained)
        return lambda: self._cut(parameters[place] for place in order())

    def _train_unfrozen(self) -> None:
        before = len(self.trained)
        super()._train_unfrozen()
        if new := [*self.trained.values()][before:]:
            self._in_order.add(self._cut(reversed(new)))

    def _buckets(self) -> list[list[Parameter]]:
        return [list(bucket.parameters.values()) for bucket in self.buckets()]

    def backward_begins(self) -> None:
        self.announce("backward_without_data")
        self._begin()

    def _begin(self) -> None:
        for bucket in self.buckets():
            bucket.let_go_of_what_is_kept()
        self._in_order.begin()

    def gradient_ready(self, parameter: Parameter) -> None:
        self._in_order.ready(parameter)

    def all_ready(self) -> None:
        self._in_order.complete()

    def backward_over(self) -> None:
        self.passes += 1
        used = self._used_on_any_rank() if self.find_unused else set(self.trained.values())
        for parameter in self.trained.values():
            parameter.grad = None  # until its bucket is there, so that a step of the optimizer passes over it
        for bucket in self._in_order.arrivals():
            for parameter in used.intersection(bucket.views):
                parameter.grad = bucket.views[parameter]
            bucket.arrived()
            if self.optimizer is not None:
                self.optimizer.step()
                self.optimizer.zero_grad()
        self._check_last()
        self._agree()

    def _agree(self) -> None:
        self.compare_weights(beside_order=not self._in_order.order_known)
        self._in_order.learn_order()

    def abandon(self) -> None:
        self.marks.owes = len(self._in_order.waits) == len(self.buckets())
        self._in_order.fill()
        if self.find_unused:
            self._used_on_any_rank()
        for _ in self._in_order.arrivals():
            pass
        if self.marks.owes:
            self._agree()
        else:
            self._check_last()

    def _start(self, bucket: Vector) -> Wait:
        if bucket is self.buckets()[-1]:
            self.marks.put(bucket.gradient, self.group.size() // self._divisor)
        return self._travel(bucket)

    def _check_last(self) -> None:
        last = self._in_order.vectors()[-1].gradient
        self.marks.check(last, rounded=not self._is_sum, at_once=not self._in_order.order_known)

    def _used_on_any_rank(self) -> set[Parameter]:
        """Parameters without a gradient on any rank keep none, as in one process: the optimizer leaves them alone."""
        parameters = list(self.trained.values())
        used = self._on_any_rank((p.grad is not None for p in parameters), parameters[0].device)
        return {p for p, is_used in zip(parameters, used, strict=True) if is_used}

    join = joins.join

    def take_state_of(self, rank: int, uneven: bool) -> None:
        """Have on every rank what ``rank`` has of the module, and where steps were ``uneven`` of its optimizers."""
        tensors = [*self.module.named_parameters(), *self.module.named_buffers()]
        broadcast_state(self.shared(tensors), rank, self.group)
        if uneven:
            behind.catch_up(self, rank)

    def backward_without_data(self) -> None:
        """Take part in the other ranks' backward pass with zeros."""
        self._begin()
        self.module.zero_grad()
        self._in_order.fill()
        self.all_ready()
        self.backward_over()
        self.module.zero_grad()  # for what comes after ``join``

    def mean_over(self, ranks: int) -> None:
        """Have gradients divided by ``ranks``, unless that is left to a communication hook."""
        self._with_data = ranks
        for bucket in self.buckets():
            bucket.ranks = self._divisor

    def register_comm_hook(self, state: object, hook: CommunicationHook) -> None:
        """Have ``hook(state, bucket)`` sum and divide each bucket's gradients; it returns a future of the result.

        Takes the hooks of ``torch.distributed.algorithms.ddp_comm_hooks``, and those written for them. Raises
        RuntimeError if there is one already, or a ``compressor``.
        """
        if self.compressor is not None:
            raise RuntimeError(f"compressor={self.compressor!r} averages the gradients; leave it out to use a hook")
        if not self._is_sum:
            raise RuntimeError("register_comm_hook can only be called once, and there is a hook already")
        if not callable(hook):
            raise TypeError(f"Communication hook must be callable: a function of state and bucket, not {hook!r}")
        self._travel, self._is_sum = by_hook(hook, state, self._in_order), False
        self.weights_may_differ = True  # as with torch's post_localSGD_hook, which averages among some ranks
        self.mean_over(self._with_data)


def _check_steps_nothing_else(optimizer: torch.optim.Optimizer, module: Module) -> None:
    """Raise ValueError for parameters of others: a step in the pass would take gradients that are not averaged yet."""
    steps, own = (p for group in optimizer.param_groups for p in group["params"]), {*module.parameters()}
    if others := [tuple(p.shape) for p in steps if p.requires_grad and p not in own]:
        raise ValueError(
            f"optimizer steps {len(others)} parameters that the {type(module).__name__} does not have, the first of "
            f"shape {others[0]}, and would do so in the module's backward pass, before anybody averages their "
            "gradients; leave `optimizer` out and call its step(), or give it the module's parameters alone"
        )


def _check(compressor: Compressor, algorithm: str | None, find_unused: bool) -> None:
    """Raise TypeError or ValueError for a ``compressor`` that cannot be, or not with the rest."""
    if not (hasattr(compressor, "start") and hasattr(compressor, "error_feedback")):
        raise TypeError(f"compressor is {compressor!r}; give one of ringzero.unsynced.compression, such as TopK(0.01)")
    if algorithm is not None:
        raise ValueError(
            f"algorithm is {algorithm!r}, and compressor={compressor!r} has its own messages; give one of the two"
        )
    if find_unused and compressor.error_feedback:
        raise ValueError(
            f"compressor={compressor!r} keeps errors, and with find_unused=True those of a parameter that no rank uses "
            "would be lost; take error_feedback=False, or unused=[...] for parameters that never get a gradient"
        )
