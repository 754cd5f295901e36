"""Gather parameters before they are used, and free them after: the units of ZeRO stage 3, in one order on all ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.autograd.graph import register_multi_grad_hook
from torch.nn import Module, Parameter
from torch.utils._pytree import tree_leaves

from ringzero.data_parallel.in_order import Wait, as_on_rank_0
from ringzero.zero.travel import Travel, start
from ringzero.zero.vector import ShardedVector

_task, NOT_BACKWARD = torch._C._current_graph_task_id, -1  # which backward pass is running


class Unit:
    """Vectors that are whole at the same time, from ``start`` to ``free``; their parameters are read after ``wait``."""

    def __init__(self, vectors: Iterable[ShardedVector], travel: Travel):
        self.vectors, self.whole, self._travel = list(vectors), True, travel
        self._device = next((vector.whole.device for vector in self.vectors), torch.device("cpu"))
        self._gathered: Wait | None = None  # of the gather that is on its way

    def start(self) -> None:
        for vector in self.vectors:
            vector.make_whole()
        self.whole, self._gathered = True, start(self._travel, self._gather, self._device)

    def _gather(self) -> None:
        for vector in self.vectors:
            vector.gather(self._travel)

    def wait(self) -> None:
        if self._gathered is not None:
            self._gathered()
            self._gathered = None

    def free(self) -> None:
        self.wait()
        if self.whole:
            for vector in self.vectors:
                vector.free_whole()
            self.whole = False


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
            each: Unit((v for v in vectors if v.parameters.keys() & named.keys()), travel)
            for each, named in parts.items()
            if named or each is module  # a unit without parameters would take the place of one to gather ahead
        }
        self.order = list(of_module.values())  # of the forward pass
        self._root, self._order_known = self.order[0], False
        self._unit_of = {p: unit for unit in self.order for v in unit.vectors for p in v.parameters.values()}
        self._pass: list[Unit] = []  # the units in the order of the present pass; none between passes
        self._started = 0  # how many of them were gathered
        self._used: list[Unit] = []
        self._task = NOT_BACKWARD
        for each, unit in of_module.items():
            unit.free()
            each.register_forward_pre_hook(lambda module, args, unit=unit: self._before_forward(unit))
            each.register_forward_hook(lambda module, args, output, unit=unit: self._after_forward(unit, output))

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

    def end(self) -> None:
        """A pass is over. Gather what this rank did not use, since others may have; free all."""
        for unit in self._pass[self._started :]:
            unit.start()
        for unit in self._pass:
            unit.free()
        self._pass = []

    def _begin(self, order: list[Unit]) -> None:
        self.end()
        self._pass, self._started, self._used, self._task = order, 0, [], _task()

    def _before_forward(self, unit: Unit) -> None:
        if unit is self._root:
            self._begin(self.order)
        self.need(unit)

    def _after_forward(self, unit: Unit, output: Any) -> None:
        tensors = [leaf for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        if tensors:
            register_multi_grad_hook(tensors, lambda _: self._before_backward(unit), mode="any")
        if _task() == NOT_BACKWARD:  # otherwise a checkpoint computes the unit again, for its backward pass
            unit.free()
        if unit is self._root:
            if not self._order_known:
                self._learn_order()
            self.end()

    def _before_backward(self, unit: Unit) -> None:
        if self._task != _task():
            self._begin([self._root, *[each for each in reversed(self.order) if each is not self._root]])
        self.need(unit)

    def _learn_order(self) -> None:
        """From now on gather in the order in which rank 0 used its units."""
        used_first = [self.order.index(unit) for unit in dict.fromkeys([*self._used, *self.order])]
        self.order = [self.order[i] for i in as_on_rank_0(used_first, self.group)]
        self._order_known = True
