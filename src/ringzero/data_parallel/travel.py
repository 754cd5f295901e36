"""How gradients are summed over the ranks: ``start(vector)`` begins it and returns a function that waits for it."""

from functools import partial

import torch.distributed as dist

from ringzero.collectives import all_reduce
from ringzero.data_parallel.executor import queue_of
from ringzero.data_parallel.in_order import Wait
from ringzero.data_parallel.vector import Vector


class BackendsOwn:
    """By the all-reduce of the group's backend, which needs no executor: it works beside the caller by itself."""

    def __init__(self, group: dist.ProcessGroup):
        self.group = group

    def start(self, vector: Vector) -> Wait:
        return dist.all_reduce(vector.gradient, group=self.group, async_op=True).wait


class Ringzeros:
    """By the all-reduce of ringzero that has the name ``algorithm``."""

    def __init__(self, algorithm: str, group: dist.ProcessGroup):
        self.group, self._all_reduce = group, partial(all_reduce, algorithm=algorithm, group=group)

    def start(self, vector: Vector) -> Wait:
        gradient = vector.gradient
        assert gradient is not None  # it is full
        return queue_of(self.group, gradient.device).submit(partial(self._all_reduce, gradient)).result
