"""ZeRO stage 1: each rank keeps the optimizer's states for its shard of the parameters, and steps that shard alone.

To step a shard takes its gradient only, so where data parallelism all-reduces a reduce-scatter is enough; after the
step an all-gather hands the new parameters round. Both send what the all-reduce sent, 2 Psi (N-1)/N elements.

Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch
import torch.distributed as dist

from ringzero.zero.model import ZeroModel


class ZeroStage1(ZeroModel):
    """Arguments and errors as ``ZeroModel`` says. Gradients are whole on every rank until ``zero_grad``."""

    def __init__(self, module, optimizer, **options):
        super().__init__(module, optimizer, **options)
        self._adding, self._order_known = False, False
        self._aside = ThreadPoolExecutor(1)  # reduces flats beside the backward pass, one after another

    @contextmanager
    def no_sync(self):
        """Backward passes inside only add gradients up on this rank; the next one outside reduces the sum."""
        before, self._adding = self._adding, True
        try:
            yield
        finally:
            self._adding = before

    def backward_begins(self):
        self._missing, self._filled, self._reducing = {flat: set(flat.names) for flat in self.flats}, [], []

    def gradient_ready(self, parameter):
        flat = self._flat_of[parameter]
        flat.add(parameter)
        self._missing[flat].discard(parameter)
        if not self._missing[flat]:
            self._filled.append(flat)
            if not self._adding:
                self._reduce_full_ones()

    def _reduce_full_ones(self):
        """In order, whatever order they fill in: every rank must start the same reductions one after another."""
        while len(self._reducing) < len(self.flats) and not self._missing[self.flats[len(self._reducing)]]:
            self._reducing.append(self._aside.submit(self._reduce, self.flats[len(self._reducing)]))

    def _reduce(self, flat):
        flat.reduce_gradient()

    def backward_over(self):
        missing = [name for name, p in self.trained.items() if p in self._missing[self._flat_of[p]]]
        if missing and not self.find_unused:
            meant = f"if that is meant, use find_unused=True, or unused={missing}"
            raise RuntimeError(f"no gradient in this backward pass for {', '.join(missing)}; {meant}")
        for name in missing:
            self.gradient_ready(self.trained[name])
        for reduction in self._reducing:
            reduction.result()
        if not self._order_known:
            self._learn_order()

    def _learn_order(self):
        """From now on reduce in the order in which rank 0's flats were filled: layers may be registered in any."""
        order = [self.flats.index(flat) for flat in self._filled]
        dist.broadcast_object_list(order, group_src=0, group=self.group)
        self.flats, self._order_known = [self.flats[i] for i in order], True

    @torch.no_grad()
    def step(self):
        """Step this rank's shard with its gradient, and get everyone else's."""
        self.check_unchanged()
        if any(flat.added for flat in self.flats):
            raise RuntimeError("gradients added up in no_sync were not reduced; make the last backward pass outside it")
        for flat in self.flats:
            flat.master.grad = None if flat.reduced is None else flat.reduced.to(flat.master.dtype)
        self.optimizer.step()
        for flat in self.flats:
            flat.master.grad = None
        self.share()

    @torch.no_grad()
    def share(self):
        """Bring the module's parameters up to date with what the ranks' optimizers hold."""
        for flat in self.flats:
            if flat.mixed:
                flat.shard.copy_(flat.master)
            if not self.own_shards:  # which the next pass gathers
                flat.gather()
