"""Overlapped data parallelism in plain torch, for reading: what ``ddp.py`` does. Nothing comes from the rest of it.

    model = OverlappedDataParallel(module)
    loss_of(model(inputs), targets).backward()
    optimizer.step()

On the default process group; every trained parameter gets a gradient in each pass.
"""

from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn


class OverlappedDataParallel(nn.Module):
    """Gradients leave in buckets while the backward pass goes on; at its end ``grad`` is the mean over all ranks."""

    def __init__(self, module, bucket_cap_mb=25):
        super().__init__()
        self.module, self.syncing = module, True
        self.came, self.started = set(), []  # gradients, and the buckets that have left, in this backward pass
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.detach(), src=0)  # all start with rank 0's
        self.buckets = [[]]
        for p in reversed([p for p in module.parameters() if p.requires_grad]):  # the last layer's gradient comes first
            last = self.buckets[-1]
            if last and (last[0].dtype != p.dtype or sum(q.nbytes for q in last) >= bucket_cap_mb * 2**20):
                self.buckets.append([])
            self.buckets[-1].append(p)
            p.register_post_accumulate_grad_hook(self.gradient_ready)

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def gradient_ready(self, parameter):
        """Called within backward(), as soon as ``parameter.grad`` is complete. It waits for nothing."""
        if not self.syncing:
            return
        if not self.came:
            torch.autograd.Variable._execution_engine.queue_callback(self.backward_over)
        self.came.add(parameter)
        for bucket in self.buckets[len(self.started) :]:
            if not self.came.issuperset(bucket):
                return  # later ones wait, too: all ranks send the same buckets in the same order
            vector = torch.cat([p.grad.flatten() for p in bucket]) / dist.get_world_size()
            self.started.append((vector, dist.all_reduce(vector, async_op=True)))

    def backward_over(self):
        """Called once, when all gradients have come: only now wait."""
        for bucket, (vector, work) in zip(self.buckets, self.started, strict=True):
            work.wait()
            for p, mean in zip(bucket, vector.split([p.numel() for p in bucket]), strict=True):
                p.grad.copy_(mean.view_as(p))
        self.came, self.started = set(), []

    @contextmanager
    def no_sync(self):
        """Backward passes inside only add gradients up on this rank."""
        self.syncing = False
        try:
            yield
        finally:
            self.syncing = True
