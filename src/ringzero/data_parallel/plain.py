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
    """Averages gradients over all ranks, in buckets, during backward()."""

    def __init__(self, module, bucket_cap_mb=25):
        super().__init__()
        self.module, self.syncing = module, True
        self.came, self.started = set(), []  # of one backward pass
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.detach(), src=0)  # all start with rank 0's
        self.buckets = [[]]
        trained = [p for p in module.parameters() if p.requires_grad]
        for p in reversed(trained):  # the last layer's gradient comes first
            last = self.buckets[-1]
            full = sum(q.nbytes for q in last) >= bucket_cap_mb * 2**20
            if last and (full or last[0].dtype != p.dtype):
                self.buckets.append([])
            self.buckets[-1].append(p)
            p.register_post_accumulate_grad_hook(self.gradient_ready)

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def gradient_ready(self, parameter):
        """Called in backward() when parameter.grad is complete. Never waits."""
        if not self.syncing:
            return
        if not self.came:
            engine = torch.autograd.Variable._execution_engine
            engine.queue_callback(self.backward_over)
        self.came.add(parameter)
        for bucket in self.buckets[len(self.started) :]:
            if not self.came.issuperset(bucket):
                return  # later buckets wait, too: all ranks keep one order
            vector = torch.cat([p.grad.flatten() for p in bucket])
            vector /= dist.get_world_size()
            work = dist.all_reduce(vector, async_op=True)
            self.started.append((vector, work))

    def backward_over(self):
        """Called once, when all gradients have come: only now wait."""
        for bucket, (vector, work) in zip(self.buckets, self.started, strict=True):
            work.wait()
            means = vector.split([p.numel() for p in bucket])
            for p, mean in zip(bucket, means, strict=True):
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
