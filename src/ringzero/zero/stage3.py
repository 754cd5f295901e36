"""ZeRO stage 3: stage 2, and each rank keeps its shard of the parameters alone.

A unit's parameters are gathered before it computes, in the forward and again in the backward pass, while the unit
before it still does, and freed after. With the gradients' reduce-scatter that sends 3 Psi (N-1)/N elements, and none
after the step. As ``fully_shard``: Zhao et al., "PyTorch FSDP", VLDB 16 (2023).
"""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist
from torch.autograd.graph import register_multi_grad_hook
from torch.utils._pytree import tree_leaves

from ringzero.zero.stage2 import ZeroStage2
from ringzero.zero.units import default_units, parameters_of

_task, NOT_BACKWARD = torch._C._current_graph_task_id, -1  # which backward pass is running


class Unit:
    """Flats that are whole at the same time, from ``start`` to ``free``; to be read after ``wait``."""

    def __init__(self, flats):
        self.flats, self.whole, self.gathering = list(flats), True, None

    def start(self, aside, group):
        for flat in self.flats:
            flat.make_whole()
        self.whole, self.gathering = True, aside.submit(self._gather, group)

    def _gather(self, group):
        for flat in self.flats:
            flat.gather(group)

    def wait(self):
        if self.gathering is not None:
            self.gathering.result()
            self.gathering = None

    def free(self):
        self.wait()
        if self.whole:
            for flat in self.flats:
                flat.free_whole()
            self.whole = False


class ZeroStage3(ZeroStage2):
    """As ``ZeroStage2``; the parameters are empty except while their unit computes.

    ``units``     modules whose parameters are gathered and freed together; by default the module's children, or what a
                  container among them holds. What is in no unit, or in several, is whole during the whole pass
    ``prefetch``  how many units are gathered ahead

    A parameter may be read only inside the ``forward`` of its unit. Those not trained, and buffers, stay whole. All
    ranks gather in one order, so with ``find_unused`` they may use different units; one that is used twice all must use
    twice. Activations may be recomputed by torch's checkpoint with ``use_reentrant=False``.
    """

    own_shards = True

    def __init__(self, module, optimizer, *, units=None, prefetch=1, **options):
        units = list(default_units(module) if units is None else units)
        super().__init__(module, optimizer, units=units, **options)
        parts = parameters_of(units, module, self.trained)
        of_module = {
            each: Unit(flat for flat in self.flats if flat.parameters.keys() & named.keys())
            for each, named in parts.items()
            if named or each is module  # what has no parameters would count as a unit gathered ahead
        }
        self._order = list(of_module.values())  # of the forward pass
        self._root, self._unit_of = self._order[0], {flat: unit for unit in self._order for flat in unit.flats}
        self._gathers = ThreadPoolExecutor(1)
        self._gather_group = dist.new_group(dist.get_process_group_ranks(self.group), use_local_synchronization=True)
        self.prefetch, self._order_of_use_known = prefetch, False
        self._pass, self._started, self._used, self._task = [], 0, [], NOT_BACKWARD
        for each, unit in of_module.items():
            unit.free()
            each.register_forward_pre_hook(lambda module, args, unit=unit: self._before_forward(unit))
            each.register_forward_hook(lambda module, args, output, unit=unit: self._after_forward(unit, output))

    def _before_forward(self, unit):
        if unit is self._root:
            self._begin(self._order)
        self._need(unit)

    def _after_forward(self, unit, output):
        tensors = [leaf for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        if tensors:
            register_multi_grad_hook(tensors, lambda _: self._before_backward(unit), mode="any")
        if _task() == NOT_BACKWARD:  # and not computed again by a checkpoint
            unit.free()
        if unit is self._root:
            if not self._order_of_use_known:
                self._learn_order_of_use()
            self._end()

    def _before_backward(self, unit):
        if self._task != _task():
            self._begin([self._root, *[each for each in reversed(self._order) if each is not self._root]])
        self._need(unit)

    def _begin(self, order):
        self._end()
        self._pass, self._started, self._used, self._task = order, 0, [], _task()

    def _need(self, unit):
        """Have ``unit`` whole. All ranks gather in one order, ahead of use; what is earlier in it is gathered too."""
        place = self._pass.index(unit) if self._pass else -1
        again = place < self._started and not unit.whole  # used a second time in this pass
        upto = len(self._pass) if again and self.find_unused else place + 1 + self.prefetch  # the same for all ranks
        for each in self._pass[self._started : upto]:
            each.start(self._gathers, self._gather_group)
        self._started = max(self._started, upto)
        if again:
            unit.start(self._gathers, self._gather_group)
        unit.wait()
        self._used.append(unit)

    def _end(self):
        """Gather what this rank did not use, since others may have; free all."""
        for unit in self._pass[self._started :]:
            unit.start(self._gathers, self._gather_group)
        for unit in self._pass:
            unit.free()
        self._pass = []

    def _learn_order_of_use(self):
        """From now on gather in the order in which rank 0 used its units."""
        order = [self._order.index(unit) for unit in dict.fromkeys([*self._used, *self._order])]
        dist.broadcast_object_list(order, group_src=0, group=self.group)
        self._order, self._order_of_use_known = [self._order[i] for i in order], True

    def gradient_ready(self, parameter):
        super().gradient_ready(parameter)
        unit = self._unit_of[self._flat_of[parameter]]
        if not any(self._missing[flat] for flat in unit.flats):
            unit.free()

    def backward_over(self):
        self._end()  # first: another rank may need it to go on
        super().backward_over()
