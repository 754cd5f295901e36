"""Distributed data parallel: gradients travel while the backward pass still computes the others.

The backward pass makes gradients from the last layer to the first. They fill buckets in that order, a full bucket's
all-reduce starts at once, and the end of the backward pass waits for those still on their way.
"""

from contextlib import contextmanager
from math import inf

import torch
import torch.distributed as dist

from ringzero.data_parallel.buckets import Bucket, assign
from ringzero.data_parallel.replica import Replica, broadcast_state


class NaiveDataParallel(Replica):
    """All-reduce each gradient as soon as it is there, and wait for it: a message a parameter, and no overlap."""

    def gradient_ready(self, parameter):
        parameter.grad /= self.group.size()
        dist.all_reduce(parameter.grad, group=self.group)


class FlatDataParallel(Replica):
    """All gradients of a type in one buffer and one all-reduce, which starts only after the backward pass."""

    def backward_over(self):
        for members in assign(self.trained.values(), inf, inf):
            bucket = Bucket(members)
            for parameter in members:
                bucket.put(parameter, self.group.size())
            bucket.launch(None, self.group)
            bucket.wait()


class DistributedDataParallel(Replica):
    """``module``, its gradients averaged over ``group`` when ``loss.backward()`` returns.

    ``bucket_cap_mb``   size of a bucket in MiB, as torch's; the first one holds 1 MiB at most
    ``algorithm``       one of ringzero's all-reduces by name, or None for the backend's own
    ``step``            an optimizer to step inside ``backward``, for each bucket as soon as its gradients are there;
                        none are left after it, so they cannot be clipped
    ``find_unused``     parameters may go without a gradient; otherwise that is an error, which names them
    """

    def __init__(
        self, module, *, bucket_cap_mb=25, algorithm=None, step=None, find_unused=False, unused=(), group=None
    ):
        if not bucket_cap_mb > 0:
            raise ValueError(f"bucket_cap_mb is {bucket_cap_mb!r}; give a positive number of MiB")
        super().__init__(module, unused=unused, group=group)
        self.bucket_cap_mb, self.algorithm, self.optimizer, self.find_unused = (
            bucket_cap_mb,
            algorithm,
            step,
            find_unused,
        )
        self._steps, self._order_known, self._joining = 0, False, False
        self._fill_buckets(reversed(self.trained.values()))  # the last layer's gradients come first

    def _fill_buckets(self, parameters):
        self.buckets = [Bucket(members) for members in assign(parameters, self.bucket_cap_mb)]
        self._bucket_of = {parameter: bucket for bucket in self.buckets for parameter in bucket.views}

    def backward_begins(self):
        if self._joining:
            self._ranks_training(1)
        self._steps, self._order, self._launched = self._steps + 1, [], 0
        for bucket in self.buckets:
            bucket.missing = set(bucket.views)

    def gradient_ready(self, parameter):
        self._order.append(parameter)
        self._bucket_of[parameter].put(parameter, self.group.size())
        self._launch_full_buckets()

    def _launch_full_buckets(self):
        """In order, whatever order they fill in: every rank must start the same all-reduces one after another."""
        while self._launched < len(self.buckets) and not self.buckets[self._launched].missing:
            self.buckets[self._launched].launch(self.algorithm, self.group)
            self._launched += 1

    def backward_over(self):
        parameters, used = self.trained.values(), set(self.trained.values())
        if missing := [name for name, p in self.trained.items() if p in self._bucket_of[p].missing]:
            if not self.find_unused:
                raise RuntimeError(
                    f"no gradient in this backward pass for {', '.join(missing)}; if that is meant, use "
                    f"find_unused=True, or unused={missing} if they never get one"
                )
            for name in missing:
                self._bucket_of[self.trained[name]].put(self.trained[name], self.group.size())
            self._launch_full_buckets()
        if self.find_unused:  # used on any rank; the others keep no gradient, as in one process
            flags = torch.tensor(
                [p.grad is not None for p in parameters], dtype=torch.uint8, device=self.buckets[0].flat.device
            )
            dist.all_reduce(flags, op=dist.ReduceOp.MAX, group=self.group)
            used = {parameter for parameter, flag in zip(parameters, flags.tolist(), strict=True) if flag}
        for parameter in parameters:
            parameter.grad = None  # until its bucket is there, so that a step of the optimizer passes over it
        for bucket in self.buckets:
            bucket.wait()
            for parameter in used.intersection(bucket.views):
                parameter.grad = bucket.views[parameter]
            if self.optimizer is not None:
                self.optimizer.step()
                for parameter in bucket.views:
                    parameter.grad = None
        if not self._order_known:
            self._learn_order()

    def _learn_order(self):
        """Refill the buckets in the order in which rank 0's gradients came: layers may be registered in any."""
        number = {parameter: i for i, parameter in enumerate(self.trained.values())}
        order = [[number[parameter] for parameter in self._order]]
        dist.broadcast_object_list(order, group_src=0, group=self.group)
        if len(order[0]) == len(number):
            self._order_known = True
            self._fill_buckets([list(number)[i] for i in order[0]])

    @contextmanager
    def join(self):
        """Ranks may run different numbers of steps inside: one that is out of data brings zeros to the others' means.

        At the end all ranks have the parameters of one that ran longest.
        """
        self._joining, self._steps = True, 0
        try:
            yield
            optimizer, self.optimizer = self.optimizer, None
            while self._ranks_training(0):
                self._order = []
                for parameter in self.trained.values():
                    parameter.grad = None
                for bucket in self.buckets:
                    bucket.flat.zero_()
                    bucket.missing = set()
                    bucket.launch(self.algorithm, self.group)
                self.backward_over()
            self.optimizer, steps = optimizer, [None] * self.group.size()
            dist.all_gather_object(steps, self._steps, group=self.group)
            broadcast_state(self.module, steps.index(max(steps)), self.group)
        finally:
            self._joining = False

    def _ranks_training(self, this_one):
        count = torch.tensor([this_one], device=self.buckets[0].flat.device)
        dist.all_reduce(count, group=self.group)
        return count.item()
