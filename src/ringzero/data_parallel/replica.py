"""A replica: one rank's copy of the model, whose gradients are shared with the other ranks as they come."""

import copy
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, cast
from weakref import proxy

import torch
import torch.distributed as dist
from torch.nn import Module, Parameter
from torch.utils._pytree import tree_leaves

from ringzero.collectives import event_threads
from ringzero.data_parallel import passes, structure
from ringzero.data_parallel.alike import (
    broadcast_changes,
    broadcast_state,
    check_alike,
    refuse_renormalized,
    refuse_without_numbers,
)
from ringzero.data_parallel.executor import queue_of
from ringzero.data_parallel.hooked import hook, leave_earlier_replica, unhook
from ringzero.data_parallel.in_order import as_on_rank_0, is_compared
from ringzero.data_parallel.join import Joining
from ringzero.data_parallel.leftovers import holders, refuse_steps, replicas
from ringzero.data_parallel.marks import Marks
from ringzero.data_parallel.own_group import OwnGroup, own_group
from ringzero.data_parallel.passes import NOT_BACKWARD, running_backward
from ringzero.data_parallel.structure import Structure
from ringzero.data_parallel.summary import holds
from ringzero.data_parallel.vector import Vector
from ringzero.record.eager import not_compiled

AVERAGED = (
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.complex128,
)  # fmt: skip
_numbers = itertools.count()  # of replicas


class Replica(Module):
    """``module`` with a hook on each trained parameter. Subclasses say what to do when gradients are there.

    All ranks get rank 0's parameters and buffers, and before each forward pass that trains rank 0's buffers, unless
    ``broadcast_buffers`` is false. ``unused`` names parameters that never get a gradient, and may differ between ranks.
    The ``state_dict`` is the module's own. A module that is wrapped again leaves its earlier replica, which cannot be
    used any more.

    ``module``   what was wrapped
    ``trained``  ``{name: parameter}`` of those that require a gradient and are not ``unused``; a tied one comes once
    ``group``    a process group of its own, of the ranks that have the copies

    Raises ValueError when ``unused`` names what is not there, a parameter is in another replica with another module, or
    the ranks' modules differ: the first difference is named; or for a trained parameter of a type of which no mean is
    taken, such as float8. Raises RuntimeError, as torch's, when there is nothing to
    train; TypeError for a module with a replica inside.
    """

    _structure: Structure | None = None  # a copy has none
    _weights_agree: Callable[[], object] | None = None  # waits for what all ranks say of their weights
    optimizer: Any = None  # that steps with the model
    joining: Joining | None = None  # while inside ``join``, with data
    weights_may_differ = False  # as inside ``join``, where a rank that is out of data makes no steps
    hooks_in_no_sync = False  # whether gradients that no_sync keeps on this rank are announced too

    def __init__(self, module: Module, *, unused: Collection[str] = (), broadcast_buffers: bool = True,
                 group: dist.ProcessGroup | None = None):  # fmt: skip
        super().__init__()
        leave_earlier_replica(module, Replica)
        refuse_without_numbers(module)
        self.module, self.broadcast_buffers = module, broadcast_buffers
        ranks_of = cast(dist.ProcessGroup, group or dist.group.WORLD)
        named = dict(module.named_parameters())
        if unknown := set(unused) - {*named, *dict(module.named_buffers())}:
            raise ValueError(f"unused has {sorted(unknown)}; the module's parameters are {', '.join(named)}")
        trained = {name: p for name, p in named.items() if p.requires_grad and name not in unused}
        if not trained:
            raise RuntimeError(f"{type(module).__name__} has no parameter that requires a gradient: nothing to train")
        self._each_rank_s_own = check_alike(module, unused, ranks_of)
        if odd := [f"{name} is {p.dtype}" for name, p in trained.items() if p.dtype not in AVERAGED]:
            raise ValueError(f"{', '.join(odd)}, and a mean over ranks is taken of {', '.join(map(str, AVERAGED))}")
        if ranks_of.size() > 1:
            refuse_renormalized(module)
        self._own_groups: list[OwnGroup] = []
        self.group = self._new_group(ranks_of)
        broadcast_state(self.shared([*module.named_parameters(), *module.named_buffers()]), 0, self.group)
        refuse_steps()
        replicas[next(_numbers)] = self
        event_threads.calm()  # so that all-reduces of the backend's own, too, hinder the backward pass less
        self._syncing = True
        self.passes = 0  # backward passes of all ranks together, those that failed too
        self.joined = -1  # how many passes there were when the last join was over
        self._ended = 0  # backward passes at whose end ``compare_weights`` was called
        self._task: int | None = None  # the backward pass that is running, by autograd's number
        self._waiting: list[Parameter] = []  # at most one, whose gradient other hooks of the program may still change
        self.marks = Marks(proxy(self))
        self.in_backward = (
            False  # whether a backward pass is running that has brought a gradient, or ended with an error
        )
        self._has_buffers = False  # those of rank 0, for a forward pass that ended with an error and may come again
        self._stays = False  # whether its gradients stay on this rank for now, as in no_sync
        self._has_graph = False  # whether the backward pass makes a graph of its own, by create_graph=True
        self.trained: dict[str, Parameter] = {}
        self._names: dict[Parameter, str] = {}
        self._hooks: list[Any] = []
        self._frozen = [p for name, p in named.items() if name not in unused]  # but for what is trained
        self._unused = tuple(unused)
        self._known, self._structure = set(named.values()), Structure(module)
        self._train(trained)

    def _train(self, named: Mapping[str, Parameter]) -> None:
        """Hook ``named`` parameters from now on."""
        self.trained.update(named)
        self._names.update({parameter: name for name, parameter in named.items()})
        self._known.update(named.values())
        self._hooks += hook(self, list(named.values()))
        self._frozen = [parameter for parameter in self._frozen if parameter not in self._names]

    @not_compiled
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        self._check_usable()
        if self.has_unfrozen:
            self._train_unfrozen()
        trains = self.broadcast_buffers and self._syncing and torch.is_grad_enabled() and self.module.training
        if trains and not self._has_buffers:
            broadcast_changes(self.shared(self.module.named_buffers()), self.module, self.group)
            self._has_buffers = True
        output = self.module(*args, **kwargs)
        if trains:
            self._has_buffers = False
        if torch.is_grad_enabled():
            structure.check_wrapped(self)  # after the pass, which has what is looked at in the processor's cache
        for leaf in tree_leaves(output):
            if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
                _ = leaf.grad_fn  # found anew for a view that was written to; without that register_hook would crash
                leaf.register_hook(partial(passes.reaches_output, self))
        return output

    def shared(self, named: Iterable[tuple[str, torch.Tensor]]) -> list[torch.Tensor]:
        """Those of the ``named`` tensors of the module that are the same on all ranks, or ought to be."""
        return [tensor for name, tensor in named if name not in self._each_rank_s_own]

    @property
    def has_unfrozen(self) -> bool:
        """Whether a parameter that was frozen requires a gradient now."""
        with torch._C.DisableTorchFunctionSubclass():  # ``Gone``, of stage 3, would look at each access
            return any(parameter.requires_grad for parameter in self._frozen)

    def _train_unfrozen(self) -> None:
        """Hook what was frozen when the module was wrapped, and is not any more, on every rank alike."""
        names = {parameter: name for name, parameter in self.module.named_parameters()}
        unfrozen = {names[p]: p for p in self._frozen if p.requires_grad and p in names}
        if late := [name for name, parameter in unfrozen.items() if parameter not in self._known]:
            raise structure.came_late(self, late)
        self._frozen = [p for p in self._frozen if not p.requires_grad or p in names]  # others have left the module
        self._train(unfrozen)

    def _check_usable(self) -> None:
        """Raise RuntimeError if the module has another replica by now, or the last backward pass had an error."""
        if not self._hooks:
            raise RuntimeError(
                f"the {type(self.module).__name__} of this {type(self).__name__} was wrapped again; use the new wrapper"
            )
        if running_backward() == NOT_BACKWARD:
            self.marks.check_last_pass()
            if self.in_backward and self._stays:  # nothing is on its way: what came stays, as in one process
                self.abandon()
                self.end_of_backward()
            elif self.in_backward:
                self._give_up()
                raise RuntimeError(
                    f"the last backward pass of this {type(self).__name__} ended with an error; call its zero_grad() "
                    "on every rank, which ends what is on its way, and go on"
                )
            self._task = None

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients. After a backward pass that ended with an error, all ranks must call it."""
        if self.in_backward and running_backward() == NOT_BACKWARD:
            try:
                self._give_up()
            finally:
                self.end_of_backward()
        holders.discard(self)
        super().zero_grad(set_to_none)

    def _give_up(self) -> None:
        """The last backward pass ended with an error: end what is on its way, once.

        Raises RuntimeError if it did not on all ranks.
        """
        if not self.marks.failed:
            self.marks.failed = True
            self.abandon()
            self.passes += 1

    @property
    def in_join(self) -> bool:
        """Whether this rank is inside ``join`` and has data."""
        return self.joining is not None

    def announce(self, name: str, *args: Any) -> None:
        """Inside ``join``: ranks that are out of data call the method ``name`` now."""
        if self.joining is not None:
            self.joining.agree((name, *args))

    def summary(self) -> str:
        """What the model holds, a line each: what is trained, frozen and whole, in which types, buckets and groups."""
        holds = self._holds()
        width = max(map(len, holds))
        return "\n".join(f"{what:{width}}  {text}" for what, text in holds.items())

    def _holds(self) -> dict[str, str]:
        """``{what: in words}``, the lines of ``summary``."""
        return holds(self)

    def _buckets(self) -> list[list[Parameter]]:
        """Parameters whose gradients travel in one message, in the order in which they leave, if that is known."""
        return [[parameter] for parameter in self.trained.values()]

    def leave(self) -> None:
        """Leave the module as it was before: hooks are removed."""
        unhook(list(self.trained.values()), self._hooks)
        self._hooks = []

    def __deepcopy__(self, memo: dict) -> "Replica":
        return _copy_of(type(self), copy.deepcopy(self.module, memo))

    def __reduce__(self) -> tuple:
        return _copy_of, (type(self), self.module)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """That of the module, as if it were not wrapped."""
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Of the module, as if it were not wrapped."""
        return self.module.load_state_dict(*args, **kwargs)

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *args: Any) -> None:
        """Inside the ``load_state_dict`` of a module that holds this one: keys are as ``state_dict`` has them."""
        inside = prefix + "module."
        for key in [key for key in state_dict if key.startswith(prefix)]:
            if not key.startswith(inside) or "module" in self.module._modules:
                state_dict[inside + key.removeprefix(prefix)] = state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, *args)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes inside only add gradients up on this rank; the next one outside synchronises the sum."""
        before, self._syncing = self._syncing, False
        try:
            yield
        finally:
            self._syncing = before

    # ---- backward passes: ``passes.py`` says when they begin and end

    gradient_complete, end_of_backward = passes.gradient_complete, passes.end

    def backward_begins(self) -> None:
        """Called before the first ``gradient_ready`` of a backward pass."""

    def gradient_ready(self, parameter: Parameter) -> None:
        """Called during the backward pass, as soon as ``parameter.grad`` is complete."""

    def all_ready(self) -> None:
        """Called at the end of a backward pass, after the last ``gradient_ready``: what has not left now leaves."""

    def backward_over(self) -> None:
        """Called at the end of a backward pass, after ``all_ready`` of all models, before ``loss.backward()`` returns.

        Raises RuntimeError, with names, if a parameter has no gradient: other ranks may have one of it.
        """
        self.passes += 1
        if missing := self._missing():
            raise RuntimeError(
                f"no gradient in this backward pass for {', '.join(missing)}; if that is meant on every rank, use "
                f"unused={missing}; if it differs, DistributedDataParallel with find_unused=True"
            )

    def compare_weights(self, beside_order: bool = False) -> None:
        """Call it at the end of each pass: at that of some, begin to compare the ranks' weights.

        If they differ, the next pass says so. ``beside_order``: the order of vectors is learned now, and the weights
        travel with it.
        """
        self._ended += 1
        weights = {} if beside_order or self.weights_may_differ else self.whole_weights
        if weights and is_compared(self._ended):
            self._weights_agree = as_on_rank_0([], self.group, weights)

    @property
    def whole_weights(self) -> Mapping[str, Parameter]:
        """Trained parameters that are whole on every rank, and the same."""
        return self.trained

    def _missing(self) -> list[str]:
        """Names of the trained parameters without a gradient at the end of a pass."""
        return [name for name, p in self.trained.items() if p.grad is None]

    def abandon(self) -> None:
        """Called after a backward pass that ended with an error: end what is on its way, on every rank alike."""

    def _who_failed(self, device: torch.device) -> list[bool]:
        failed = self.marks.failed or self.marks.owes
        flags = [failed and rank == self.group.rank() for rank in range(self.group.size())]
        return self._on_any_rank(flags, device)

    def _forget_gradients(self) -> None:
        for parameter in self.trained.values():
            parameter.grad = None

    def _on_any_rank(self, flags: Iterable[bool], device: torch.device) -> list[bool]:
        """Which of the ``flags`` are true on at least one rank. All ranks must ask at the same place of a pass."""
        agreed = torch.tensor(list(flags), dtype=torch.uint8, device=device)
        # Behind the gradients, in their queue: two threads may not use one process group.
        find_out = partial(dist.all_reduce, agreed, op=dist.ReduceOp.MAX, group=self.group)
        queue_of(self.group, device).submit(find_out).result()
        return [bool(flag) for flag in agreed.tolist()]

    def _new_group(self, ranks_of: dist.ProcessGroup) -> dist.ProcessGroup:
        """A process group of the same ranks for this replica alone."""
        self._own_groups.append(own_group(ranks_of, self))
        return self._own_groups[-1].group

    def _vector(self, parameters: Iterable[Parameter]) -> Vector:
        return Vector({self._names[p]: p for p in parameters}, self.group.size())


def _copy_of(kind: type[Replica], module: Module) -> Replica:
    """A replica that other ranks know nothing of: to average weights, to evaluate, to load. It cannot be trained."""
    copied = kind.__new__(kind)
    Module.__init__(copied)
    copied.module, copied.trained, copied.broadcast_buffers, copied._frozen = module, {}, False, []
    copied._task, copied.in_backward, copied._syncing, copied.marks = None, False, True, Marks(proxy(copied))
    copied._hooks = [p.register_post_accumulate_grad_hook(_refuse) for p in module.parameters() if p.requires_grad]
    return copied


def _refuse(_parameter: Parameter) -> None:
    raise RuntimeError("this is a copy, whose gradients nobody averages over the ranks; to train it, wrap its `module`")
