"""Data parallel: copies of one model, each rank with its part of the batch, the gradients averaged over ranks.

Copies that start equal and step with the mean of all ranks' gradients stay equal, as one rank with the whole batch.
The backward pass makes gradients from the last layer to the first. They fill buckets in that order, a full bucket's
all-reduce starts at once, and the end of the backward pass waits for those still on their way.
"""

from contextlib import contextmanager
from itertools import zip_longest
from math import inf

import torch
import torch.distributed as dist

from ringzero.collectives import event_threads
from ringzero.data_parallel.buckets import Bucket, assign


class Replica(torch.nn.Module):
    """``module`` with hooks: subclasses say what to do when a gradient is ready and when the backward pass is over.

    All ranks get rank 0's parameters and buffers. ``unused`` names parameters that never get a gradient. The
    ``state_dict`` is the module's own. Raises ValueError when there is nothing to train, ``unused`` names what is not
    there, or the ranks' modules differ: the first difference is named.
    """

    def __init__(self, module, *, unused=(), group=None):
        super().__init__()
        self.module, self.group = module, group or dist.group.WORLD
        named = dict(module.named_parameters())  # a tied parameter comes once
        if unknown := set(unused) - named.keys():
            raise ValueError(f"unused has {sorted(unknown)}; the module's parameters are {', '.join(named)}")
        self.trained = {name: p for name, p in named.items() if p.requires_grad and name not in unused}
        if not self.trained:
            raise ValueError(f"{type(module).__name__} has no parameter that requires a gradient: nothing to train")
        check_alike(module, self.group)
        broadcast_state(module, 0, self.group)
        event_threads.calm()  # all-reduces of the backend's own, too, then hinder the backward pass less
        self._syncing, self._backward = True, None
        for parameter in self.trained.values():
            parameter.register_post_accumulate_grad_hook(self._hook)
        self.state_dict, self.load_state_dict = module.state_dict, module.load_state_dict

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self):
        """Backward passes inside only add gradients up on this rank; the next one outside synchronises the sum."""
        before, self._syncing = self._syncing, False
        try:
            yield
        finally:
            self._syncing = before

    def _hook(self, parameter):  # autograd calls it when parameter.grad is complete
        if self._syncing:
            if self._backward != (this_one := torch._C._current_graph_task_id()):
                self._backward = this_one
                self.backward_begins()
                torch.autograd.Variable._execution_engine.queue_callback(self.backward_over)
            self.gradient_ready(parameter)

    backward_begins = gradient_ready = backward_over = lambda *_: None  # for subclasses


class NaiveDataParallel(Replica):
    """All-reduce each gradient as soon as it is there, and wait for it: a message a parameter, and no overlap."""

    def gradient_ready(self, parameter):
        parameter.grad /= self.group.size()
        dist.all_reduce(parameter.grad, group=self.group)


class FlatDataParallel(Replica):
    """All gradients of a type in one buffer and one all-reduce, which starts only after the backward pass."""

    def backward_over(self):
        for bucket in map(Bucket, assign(self.trained.values(), inf, inf)):
            for parameter in bucket.views:
                bucket.put(parameter, self.group.size())
            bucket.launch(None, self.group)
            bucket.wait()


class DistributedDataParallel(Replica):
    """``module``, its gradients averaged over ``group`` when ``loss.backward()`` returns.

    A bucket closes at ``bucket_cap_mb`` MiB as torch's does, the first one at 1. ``algorithm`` is one of ringzero's
    all-reduces by name, or None for the backend's own. ``step`` is an optimizer to step inside ``backward``, for each
    bucket as soon as its gradients are there; none are left after it, so they cannot be clipped. With ``find_unused``
    parameters may go without a gradient; otherwise that is a RuntimeError, which names them.
    """

    def __init__(self, module, bucket_cap_mb=25, algorithm=None, step=None, find_unused=False, unused=(), group=None):
        if not bucket_cap_mb > 0:
            raise ValueError(f"bucket_cap_mb is {bucket_cap_mb!r}; give a positive number of MiB")
        super().__init__(module, unused=unused, group=group)
        self.bucket_cap_mb, self.algorithm, self.optimizer = bucket_cap_mb, algorithm, step
        self.find_unused, self._order_known, self._joining = find_unused, False, False
        self._fill_buckets(reversed(self.trained.values()))  # the last layer's gradients come first

    def _fill_buckets(self, parameters):
        self.buckets = [Bucket(members) for members in assign(parameters, self.bucket_cap_mb)]
        self._bucket_of = {parameter: bucket for bucket in self.buckets for parameter in bucket.views}

    def backward_begins(self, training=True):
        """Whether it does: inside ``join`` a rank that is out of data takes part as long as another is training."""
        if self._joining:
            last = torch.tensor([self.group.rank() if training else -1], device=self.buckets[0].flat.device)
            dist.all_reduce(last, op=dist.ReduceOp.MAX, group=self.group)
            if last < 0:
                return False
            self._ran_longest = last.item()
        self._order, self._launched = [], 0
        for bucket in self.buckets:
            bucket.missing = set(bucket.views)
        return True

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
        missing = [name for name, p in self.trained.items() if p in self._bucket_of[p].missing]
        if missing and not self.find_unused:
            meant = f"if that is meant, use find_unused=True, or unused={missing}"
            raise RuntimeError(f"no gradient in this backward pass for {', '.join(missing)}; {meant}")
        for name in missing:
            self.gradient_ready(self.trained[name])  # zeros
        used = self._used_on_any_rank() if self.find_unused else set(self.trained.values())
        for parameter in self.trained.values():
            parameter.grad = None  # until its bucket is there, so that a step of the optimizer passes over it
        for bucket in self.buckets:
            bucket.wait()
            for parameter in used.intersection(bucket.views):
                parameter.grad = bucket.views[parameter]
            if self.optimizer is not None:
                self.optimizer.step()
                self.optimizer.zero_grad()
        if not self._order_known:
            self._learn_order()

    def _used_on_any_rank(self):
        """Parameters without a gradient on any rank keep none, as in one process: the optimizer leaves them alone."""
        parameters = list(self.trained.values())
        used = torch.tensor([p.grad is not None for p in parameters], dtype=torch.uint8, device=parameters[0].device)
        dist.all_reduce(used, op=dist.ReduceOp.MAX, group=self.group)
        return {parameters[i] for i in used.nonzero()}

    def _learn_order(self):
        """Refill the buckets in the order in which rank 0's gradients came: layers may be registered in any."""
        names = {parameter: name for name, parameter in self.trained.items()}
        dist.broadcast_object_list(order := [names[p] for p in self._order], group_src=0, group=self.group)
        self._fill_buckets([self.trained[name] for name in order])
        self._order_known = True

    @contextmanager
    def join(self):
        """Ranks may run different numbers of steps inside; all end with the state of one that ran longest."""
        self._joining, self._ran_longest = True, 0
        try:
            yield
            while self.backward_begins(training=False):
                self.module.zero_grad()
                for parameter in self.trained.values():
                    self.gradient_ready(parameter)  # zeros, to the other ranks' means
                self.backward_over()
            broadcast_state(self.module, self._ran_longest, self.group)
        finally:
            self._joining = False


def broadcast_state(module, root, group):
    """Give every rank the parameters and buffers of rank ``root`` of the group."""
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), group_src=root, group=group)


def check_alike(module, group):
    """Raise ValueError, on every rank, naming the first parameter or buffer in which a rank differs from rank 0."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    mine = [f"{name}: {tuple(t.shape)} {t.dtype}{' trained' * t.requires_grad}" for name, t in tensors]
    dist.all_gather_object(everyone := [None] * group.size(), mine, group=group)
    for rank, theirs in enumerate(everyone):
        for first, other in zip_longest(everyone[0], theirs, fillvalue="nothing more"):
            if first != other:
                raise ValueError(f"the ranks' modules differ: rank 0 has {first}, rank {rank} has {other}")
