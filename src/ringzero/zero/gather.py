"""Gather parameters before they are used, and free them after: the units of ZeRO stage 3, in one order on all ranks."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary, ref

import torch
import torch.distributed as dist
from torch._C._functorch import peek_interpreter_stack
from torch.autograd.graph import register_multi_grad_hook, saved_tensors_hooks
from torch.nn import Module, Parameter
from torch.utils._pytree import tree_leaves

from ringzero.data_parallel.in_order import Wait, as_on_rank_0
from ringzero.data_parallel.replica import NOT_BACKWARD, running_backward
from ringzero.record.eager import not_compiled
from ringzero.zero.travel import Travel, start
from ringzero.zero.vector import ShardedVector


class Unit:
    """Vectors that are whole at the same time, from ``start`` to ``free``; after ``wait`` parameters are there."""

    def __init__(self, vectors: Iterable[ShardedVector], travel: Travel, gatherer: Gatherer):
        self.vectors, self.whole, self._travel, self.gatherer = list(vectors), True, travel, gatherer
        self._gathered: Wait | None = None  # of the gather that is on its way
        for vector in self.vectors:
            _unit_in[vector.whole.untyped_storage()._cdata] = self

    def start(self) -> None:
        for vector in self.vectors:
            vector.make_whole()
        self.whole = True
        if self.vectors:  # a module may have none of its own: nothing travels, on no device
            self._gathered = start(self._travel, self._gather, self.vectors[0].whole.device)

    def _gather(self) -> None:
        for vector in self.vectors:
            vector.gather(self._travel)

    @property
    def is_there(self) -> bool:
        return self.whole and self._gathered is None

    def wait(self) -> None:
        if self._gathered is not None:
            self._gathered()
            self._gathered = None
            for vector in self.vectors:
                vector.show_whole()

    def free(self) -> None:
        self.wait()
        if self.whole:
            for vector in self.vectors:
                vector.free_whole()
            self.whole = False


# What autograd saves for the backward pass may be in memory that is freed by then. Hooks on what each unit returns have
# it gathered in time, unless something leaves the unit by another way, such as an attribute. So whoever reads what was
# saved asks for its unit.

_unit_in: WeakValueDictionary[int, Unit] = WeakValueDictionary()  # by the storage of a vector


class Saved(NamedTuple):
    tensor: torch.Tensor  # detached: one that an operation saved of its own results would keep itself alive
    version: int
    unit: Unit | None


def _save(tensor: torch.Tensor) -> Saved:
    unit = _unit_in.get(tensor.untyped_storage()._cdata) if tensor.layout == torch.strided else None
    return Saved(tensor.detach(), tensor._version, unit)


def _read(saved: Saved) -> torch.Tensor:
    if saved.unit is not None:
        saved.unit.gatherer.before_backward(saved.unit)
    elif saved.tensor._version != saved.version:  # autograd itself looks no more
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: a tensor "
            f"of shape {tuple(saved.tensor.shape)} is at version {saved.tensor._version}, expected {saved.version}"
        )
    return saved.tensor


def _weakly(unit: Unit) -> Callable[[torch.Tensor], None]:
    """A hook on its parameters, which does not keep it alive."""
    weak = ref(unit)

    def hook(_gradient: torch.Tensor) -> None:
        unit = weak()
        if unit is not None:
            unit.gatherer.before_backward(unit)

    return hook


class Gatherer:
    """Hooks on a module's units, ``parts``, ``{unit: its parameters by name}``, the module itself first.

    In each pass, forward or backward, a unit and ``prefetch`` units after it are gathered when it is needed. Whether
    they are used or not, all ranks gather the same units in the same order, learned from rank 0's first forward pass.
    ``travel`` should have a process group of its own, so that gathers need not queue behind reductions; in ``group``
    the order is learned. Ranks may use different units if ``find_unused``.
    """

    def __init__(self, module: Module, parts: Mapping[Module, Mapping[str, Parameter]], vectors: list[ShardedVector],
                 group: dist.ProcessGroup, travel: Travel, prefetch: int, find_unused: bool):  # fmt: skip
        self.group, self.prefetch, self.find_unused = group, prefetch, find_unused
        of_module = {
            each: Unit((v for v in vectors if v.parameters.keys() & named.keys()), travel, self)
            for each, named in parts.items()
            if named or each is module  # a unit without parameters would take the place of one to gather ahead
        }
        self.order = list(of_module.values())  # of the forward pass
        self._root, self._order_known = self.order[0], False
        self._learned: Callable[[], list[int]] | None = None  # waits for the order of later passes
        self._unit_of = {p: unit for unit in self.order for v in unit.vectors for p in v.parameters.values()}
        self._pass: list[Unit] = []  # the units in the order of the present pass; none between passes
        self._started = 0  # how many of them were gathered
        self._used: list[Unit] = []
        self._task = NOT_BACKWARD
        self._open = False  # inside ``all_whole``
        self.owes_backward = False  # whether the last forward pass ended with an error, where others go on
        self._saving: list[ExitStack] = []  # what ends with each forward pass of a unit that is running
        self._hooks: list[Any] = []
        for parameter, unit in self._unit_of.items():  # its gradient is put beside it, so it must have its size
            self._hooks.append(parameter.register_hook(_weakly(unit)))
        self._calls: dict[Module, list[Any]] = {}  # hooks on a module's calls
        self._unit_of_module = of_module
        self._hold_units = [
            each
            for each in module.modules()
            if any(inner in of_module for inner in each.modules() if inner is not each)
        ]
        for each, unit in of_module.items():
            unit.free()
            self._calls[each] = [  # first: others, such as those of weight_norm, compute with parameters
                each.register_forward_pre_hook(partial(self._before_call, each, unit), prepend=True),
                each.register_forward_hook(partial(self._after_call, unit)),
                each.register_forward_hook(partial(self._call_over, unit), always_call=True),
            ]
        self._compiled: dict[Module, tuple[Any, Any]] = {}  # what a module's compile() left, and what is in its place
        self.gather_outside_of_compiled()

    def leave(self) -> None:
        """Leave the module: no unit is gathered or freed any more."""
        for hook in [*self._hooks, *(hook for hooks in self._calls.values() for hook in hooks)]:
            hook.remove()
        for each, (compiled, ours) in self._compiled.items():
            if each._compiled_call_impl is ours:
                each._compiled_call_impl = compiled

    def gather_outside_of_compiled(self) -> None:
        """Where ``compile()`` was called of a unit: gather before what was compiled, and not in it.

        What was compiled would have the hooks inside. A module that holds units runs as it was written.
        """
        for each in (*self._hold_units, *self._unit_of_module):
            compiled = each._compiled_call_impl
            if compiled is None or (each in self._compiled and self._compiled[each][1] is compiled):
                continue
            if each in self._hold_units:
                warnings.warn(
                    f"the compiled {type(each).__name__} holds units of ZeroStage3, which are gathered between its "
                    "operations, so it runs as if it were not compiled; name it in `units`, or call compile() of the "
                    "units that it holds",
                    stacklevel=2,
                )
                ours = each._call_impl
            else:
                for hook in self._calls.pop(each, []):
                    hook.remove()
                ours = partial(self._call, each, self._unit_of_module[each], compiled)
            self._compiled[each], each._compiled_call_impl = (compiled, ours), ours

    def _call(self, each: Module, unit: Unit, compiled: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A call of a module whose ``compile()`` was called."""
        self._before_call(each, unit, each, args)
        try:
            output = compiled(*args, **kwargs)
            self._after_call(unit, each, args, output)
        finally:
            self._call_over(unit)
        return output

    def __reduce__(self) -> tuple:  # its hooks are part of the module
        raise TypeError(
            "a module in ZeroStage3 cannot be copied or pickled, since its parameters are sharded; load the model's "
            "state_dict(), which is whole, into a module of your own"
        )

    def need(self, unit: Unit) -> None:
        """Have ``unit`` whole. All ranks gather in one order, ahead of use; what is earlier in it is gathered too."""
        place = self._pass.index(unit) if self._pass else -1
        again = place < self._started and not unit.whole  # used a second time in this pass
        upto = len(self._pass) if again and self.find_unused else place + 1 + self.prefetch  # the same for all ranks
        for each in self._pass[self._started : upto]:
            each.start()
        self._started = max(self._started, upto)
        if again:
            unit.start()
        unit.wait()
        self._used.append(unit)

    def gradient_ready(self, parameter: Parameter) -> None:
        """Free the unit of ``parameter`` if this was the last gradient of the unit."""
        unit = self._unit_of[parameter]
        if not any(vector.missing for vector in unit.vectors):
            unit.free()

    def begin_without_gradients(self) -> None:
        """Take part in the other ranks' backward pass, after a forward pass that ended with an error."""
        self.owes_backward = False
        if not self._order_known:
            self._learn_order()
        self._begin(forward=False)

    def rest(self) -> Iterator[Unit]:
        """The units of a pass that ended with an error: each that was not needed yet when it is whole."""
        for unit in self._pass:
            if unit not in self._used:
                self.need(unit)
            yield unit

    def end(self) -> None:
        """A pass is over. Gather what this rank did not use, since others may have; free all."""
        for unit in self._pass[self._started :]:
            unit.start()
        for unit in self._pass:
            unit.free()
        self._pass = []

    @contextmanager
    def all_whole(self) -> Iterator[None]:
        """Inside, all units are whole."""
        self._begin(forward=True)
        for unit in self.order:
            self.need(unit)
        self._open = True
        try:
            yield
        finally:
            self._open = False
            self.end()

    def _begin(self, forward: bool) -> None:
        if self._open:
            raise RuntimeError("inside whole_parameters the module makes no forward or backward pass; end it first")
        self.end()
        if self._learned is not None:
            self.order, self._learned = [self.order[i] for i in self._learned()], None
        last_first = [self._root, *[each for each in reversed(self.order) if each is not self._root]]
        self._pass, self._started, self._used = self.order if forward else last_first, 0, []
        self._task = running_backward()

    @not_compiled
    def _before_call(self, own: Module, unit: Unit, module: Module, _args: tuple) -> None:
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
        self.need(unit)
        self._saving.append(ExitStack())
        others: Any = torch._C._autograd._top_saved_tensors_default_hooks(False)  # such as checkpoint's: they go first
        if others is None:
            self._saving[-1].enter_context(saved_tensors_hooks(_save, _read))

    @not_compiled
    def _call_over(self, unit: Unit, *_: Any) -> None:
        if self._saving:
            self._saving.pop().close()
        if unit is self._root and running_backward() == NOT_BACKWARD:
            self.end()  # if the forward pass failed, too

    @not_compiled
    def _after_call(self, unit: Unit, _module: Module, _args: tuple, output: Any) -> None:
        tensors = [leaf for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        for tensor in tensors:
            _ = tensor.grad_fn  # found anew for a view that was written to; without that a hook on it would crash
        if tensors:
            register_multi_grad_hook(tensors, lambda _: self.before_backward(unit), mode="any")
        if running_backward() == NOT_BACKWARD:  # otherwise a checkpoint computes the unit again, for its backward pass
            unit.free()
        if unit is self._root:
            self.owes_backward = False
            if not self._order_known:
                self._learn_order()
            self.end()

    def before_backward(self, unit: Unit) -> None:
        """Have ``unit`` whole, in a backward pass."""
        if running_backward() == NOT_BACKWARD:
            raise RuntimeError("what autograd saved in a unit of ZeroStage3 is there in a backward pass only")
        if self._task != running_backward():
            self._begin(forward=False)
        if not unit.is_there:
            self.need(unit)

    def _learn_order(self) -> None:
        """From the next pass on gather in the order in which rank 0 used its units."""
        used_first = [self.order.index(unit) for unit in dict.fromkeys([*self._used, *self.order])]
        self._learned, self._order_known = as_on_rank_0(used_first, self.group), True
