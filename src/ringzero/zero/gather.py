"""Units of ZeRO stage 3: parameters are gathered before they are used and freed after, in one order on all ranks.

before_forward(unit)     unshard        before_backward(unit)   unshard
after_forward(unit)      reshard        after_backward(unit)    reshard, when its last gradient has come
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from weakref import WeakSet

import torch
import torch.distributed as dist
from torch._C._functorch import peek_interpreter_stack
from torch.autograd.graph import register_multi_grad_hook, saved_tensors_hooks
from torch.nn import Module, Parameter
from torch.utils._pytree import tree_leaves

from ringzero.data_parallel.in_order import as_on_rank_0
from ringzero.data_parallel.passes import NOT_BACKWARD, running_backward
from ringzero.record.eager import not_compiled
from ringzero.zero import saved
from ringzero.zero.compiled import Compiled
from ringzero.zero.vector import ShardedVector


class Call:
    """A call of a unit's forward whose inputs get gradients: through what is frozen in it, until the first is there."""


class Unit:
    """Vectors that are whole at the same time, from ``unshard`` to ``reshard``; after ``wait`` they are there.

    ``whole``    whether they are, or are on their way
    ``trained``  whether it has trained parameters
    ``frozen``   whether it has others, which its inputs' gradients need when all of its own have come
    ``reached``  whether a backward pass comes through it
    """

    def __init__(self, vectors: list[ShardedVector], gatherer: Gatherer):
        self.vectors, self.gatherer, self.whole, self.is_there = vectors, gatherer, True, True
        self.trained = any(vector.trained for vector in vectors)
        self.frozen = not all(vector.trained for vector in vectors)
        self.reached, self._calls = True, WeakSet[Call]()
        for vector in vectors:
            saved.remember(self, vector.whole)

    def unshard(self) -> None:
        """Begin to gather."""
        self.whole = True
        for vector in self.vectors:
            vector.unshard()

    def wait(self) -> None:
        if self.whole and not self.is_there:
            for vector in self.vectors:
                vector.wait()
            self.is_there = True

    def reshard(self) -> None:
        self.wait()
        if self.whole:
            for vector in self.vectors:
                vector.reshard()
            self.whole = self.is_there = False

    def watch_inputs(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """Stay whole in the backward pass until the gradients of these inputs come. Returns what takes their place.

        It is a view of each: its gradient is the unit's alone. The nodes of views were made before the unit's own, so
        autograd comes to the first of them when it has nothing left to do in the unit.
        """
        call = Call()

        def over(_gradient: torch.Tensor) -> None:
            self._calls.discard(call)
            self.reshard_if_over()

        def watched(value: Any) -> Any:
            if not isinstance(value, torch.Tensor) or value.grad_fn is None or value.layout is not torch.strided:
                return value
            view = value.view_as(value)
            view.register_hook(over)
            self._calls.add(call)
            return view

        return tuple(map(watched, args)), {name: watched(value) for name, value in kwargs.items()}

    def reshard_if_over(self) -> None:
        """Free what the backward pass needs no more."""
        if not self._calls and not any(vector.missing for vector in self.vectors):
            self.reshard()


class Gatherer:
    """Has the units of ``module`` whole when they are used; ``parts`` are their parameters, the module's own first.

    In each pass, forward or backward, a unit and ``prefetch`` units after it are gathered when it is needed. Whether
    they are used or not, all ranks gather the same units in the same order, learned from rank 0's first forward pass,
    in ``group``. Ranks may use different units if ``find_unused``.
    """

    def __init__(self, module: Module, parts: Mapping[Module, Mapping[str, Parameter]], vectors: list[ShardedVector],
                 group: dist.ProcessGroup, prefetch: int, find_unused: bool):  # fmt: skip
        self.group, self.prefetch, self.find_unused = group, prefetch, find_unused
        of_module = {
            each: Unit([v for v in vectors if v.parameters.keys() & named.keys()], self)
            for each, named in parts.items()
            if named or each is module  # a unit without parameters would take the place of one to gather ahead
        }
        self.order = list(of_module.values())  # of the forward pass
        self._root, self._order_known = self.order[0], False
        self._learned: Callable[[], list[int]] | None = None  # waits for the order of later passes
        self._unit_of = {
            p: unit for unit in self.order for v in unit.vectors if v.trained for p in v.parameters.values()
        }
        self._unreached: list[Unit] = []  # by any backward pass, as frozen ones before the first that is trained
        self._asks_reach = not find_unused and any(not unit.trained for unit in self.order[1:])
        self._reach_known = not self._asks_reach
        self._pass: list[Unit] = []  # the units in the order of the present pass; none between passes
        self._started = 0  # how many of them were gathered
        self._used: list[Unit] = []
        self._task = NOT_BACKWARD
        self._open = False  # inside ``all_whole``
        self.owes_backward = False  # whether the last forward pass ended with an error, where others go on
        self._saving: list[ExitStack] = []  # what ends with each forward pass of a unit that is running
        self._hooks = [saved.before_gradient(unit, p) for p, unit in self._unit_of.items()]
        self._on_calls: dict[Module, list[Any]] = {}
        for each, unit in of_module.items():
            unit.reshard()
            self._on_calls[each] = [  # first: others, such as those of weight_norm, compute with parameters
                each.register_forward_pre_hook(
                    partial(self.before_forward, unit, each), prepend=True, with_kwargs=True
                ),
                each.register_forward_hook(partial(self.after_forward, unit)),
                each.register_forward_hook(partial(self.forward_over, unit), always_call=True),
            ]
        self.compiled = Compiled(module, of_module, self, self._on_calls)
        self.compiled.gather_outside()

    def leave(self) -> None:
        """Leave the module: no unit is gathered or freed any more."""
        for hook in [*self._hooks, *(hook for hooks in self._on_calls.values() for hook in hooks)]:
            hook.remove()
        self.compiled.leave()

    def __reduce__(self) -> tuple:  # its hooks are part of the module
        raise TypeError(
            "a module in ZeroStage3 cannot be copied or pickled, since its parameters are sharded; load the model's "
            "state_dict(), which is whole, into a module of your own"
        )

    # ---- around a unit's computation

    @not_compiled
    def before_forward(
        self, unit: Unit, own: Module, module: Module, args: tuple, kwargs: dict
    ) -> tuple[tuple, dict] | None:
        if module is not own:
            raise RuntimeError(
                f"this {type(module).__name__} is a copy of a unit of ZeroStage3, and copies have no parameters; load "
                "the model's state_dict() into a module of your own"
            )
        if peek_interpreter_stack() is not None:
            raise RuntimeError(
                "in ZeroStage3 parameters come and go, which transforms of torch.func, such as vmap and jacrev, do not "
                "follow; take ZeroStage2 for this module"
            )
        if unit is self._root:
            self._begin(forward=True)
            self.owes_backward = torch.is_grad_enabled()
            for each in () if self._reach_known else self.order:
                each.reached = each.trained
        self._need(unit)
        self._saving.append(ExitStack())
        others: Any = torch._C._autograd._top_saved_tensors_default_hooks(False)  # such as checkpoint's: they go first
        if others is None:
            self._saving[-1].enter_context(saved_tensors_hooks(saved.save, saved.read))
        return unit.watch_inputs(args, kwargs) if unit.frozen and torch.is_grad_enabled() else None

    @not_compiled
    def after_forward(self, unit: Unit, _module: Module, _args: object, output: object) -> None:
        tensors = [leaf for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        for tensor in tensors:
            _ = tensor.grad_fn  # found anew for a view that was written to; without that a hook on it would crash
        if tensors or not torch.is_grad_enabled():  # without gradients a checkpoint may run it, that is to run it again
            unit.reached = True
        if tensors:
            register_multi_grad_hook(tensors, lambda _: self.before_backward(unit), mode="any")
        if running_backward() == NOT_BACKWARD:  # otherwise a checkpoint computes the unit again, for its backward pass
            unit.reshard()
        if unit is self._root:
            self.owes_backward = False
            if not self._order_known or (torch.is_grad_enabled() and not self._reach_known):
                self._learn_order()
            self.end()

    @not_compiled
    def forward_over(self, unit: Unit, *_: object) -> None:
        """Called after ``after_forward``, and in its place if the unit raised an error."""
        if self._saving:
            self._saving.pop().close()
        if unit is self._root and running_backward() == NOT_BACKWARD:
            self.end()

    def before_backward(self, unit: Unit) -> None:
        if running_backward() == NOT_BACKWARD:
            raise RuntimeError("what autograd saved in a unit of ZeroStage3 is there in a backward pass only")
        if self._task != running_backward() and not self._saving:  # or a forward pass runs, which asked for a gradient
            self._begin(forward=False)
        if not unit.is_there:
            self._need(unit)

    def after_backward(self, parameter: Parameter) -> None:
        """Free the unit of ``parameter``, whose gradient came, if it was the last one of the unit."""
        self._unit_of[parameter].reshard_if_over()

    # ---- in one order on all ranks

    def _begin(self, forward: bool) -> None:
        if self._open:
            raise RuntimeError("inside whole_parameters the module makes no forward or backward pass; end it first")
        self.end()
        if self._learned is not None:
            learned, self._learned = self._learned(), None
            places, reached = learned[: len(self.order)], learned[len(self.order) :]
            self._unreached = [unit for unit, yes in zip(self.order, reached, strict=False) if not yes]
            self.order = [self.order[i] for i in places]
        last_first = [self._root, *[each for each in reversed(self.order) if each is not self._root]]
        last_first = [each for each in last_first if each not in self._unreached]
        self._pass, self._started, self._used = self.order if forward else last_first, 0, []
        self._task = running_backward()

    def _need(self, unit: Unit) -> None:
        """Have ``unit`` whole, and gather ahead of use; what is earlier in the order is gathered too."""
        place = self._pass.index(unit) if unit in self._pass else -1
        again = place < self._started and not unit.whole  # used a second time in this pass
        upto = len(self._pass) if again and self.find_unused else place + 1 + self.prefetch  # the same for all ranks
        for each in self._pass[self._started : upto]:
            each.unshard()
        self._started = max(self._started, upto)
        if again:
            unit.unshard()
        unit.wait()
        self._used.append(unit)

    def end(self) -> None:
        """A pass is over. Gather what this rank did not use, since others may have; free all."""
        for unit in self._pass[self._started :]:
            unit.unshard()
        for unit in self.order if self._pass else ():
            unit.reshard()
        self._pass = []

    def _learn_order(self, failed: bool = False) -> None:
        """From the next pass on gather in the order in which rank 0 used its units, and backward what it reached."""
        used_first = [self.order.index(unit) for unit in dict.fromkeys([*self._used, *self.order])]
        reached = [int(unit.reached or failed or unit is self._root) for unit in self.order] if self._asks_reach else []
        self._learned, self._order_known = as_on_rank_0([*used_first, *reached], self.group), True
        self._reach_known = self._reach_known or torch.is_grad_enabled()

    # ---- outside of the module's own passes

    def begin_without_gradients(self) -> None:
        """Take part in the other ranks' backward pass, after a forward pass that ended with an error."""
        self.owes_backward = False
        if not (self._order_known and self._reach_known):
            self._learn_order(failed=True)
        self._begin(forward=False)

    def rest(self) -> Iterator[Unit]:
        """The units of a pass that ended with an error: each that was not needed yet when it is whole."""
        for unit in self._pass:
            if unit not in self._used:
                self._need(unit)
            yield unit

    @contextmanager
    def all_whole(self) -> Iterator[None]:
        """Inside, all units are whole."""
        self._begin(forward=True)
        for unit in self.order:
            self._need(unit)
        self._open = True
        try:
            yield
        finally:
            self._open = False
            self.end()
