"""Buckets: gradients that travel together in one flat buffer. Li et al., "PyTorch Distributed", VLDB 13 (2020)."""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

import ringzero

_aside = ThreadPoolExecutor(1)  # runs ringzero's all-reduces beside the backward pass, in the order of launch


def assign(parameters, bucket_cap_mb, first_bucket_mb=1):
    """As torch's: lists of parameters in order, each of one type and device, closed once it reaches its size in MiB."""
    closed, filling, caps, first_bucket_mb = [], {}, {}, min(first_bucket_mb, bucket_cap_mb)
    for order, parameter in enumerate(parameters):
        kind = (parameter.dtype, parameter.device)
        _, members = filling.setdefault(kind, (order, []))
        members.append(parameter)
        if sum(p.nbytes for p in members) >= caps.get(kind, first_bucket_mb) * 2**20:
            closed.append(filling.pop(kind))
            caps[kind] = bucket_cap_mb
    return [members for _, members in sorted([*closed, *filling.values()], key=lambda bucket: bucket[0])]


class Bucket:
    """The gradients of ``parameters`` in one buffer, and the all-reduce on its way, if there is one."""

    def __init__(self, parameters):
        sizes, one = [p.numel() for p in parameters], parameters[0]
        self.flat = torch.zeros(sum(sizes), dtype=one.dtype, device=one.device)
        self.views = {p: part.view_as(p) for p, part in zip(parameters, self.flat.split(sizes), strict=True)}
        self.missing = set(parameters)

    def put(self, parameter, ranks):
        """Take a gradient in, as its share of the mean; from now on ``parameter.grad`` is the view."""
        if parameter.grad is None:
            self.views[parameter].zero_()
        else:
            torch.div(parameter.grad, ranks, out=self.views[parameter])
            parameter.grad = self.views[parameter]
        self.missing.discard(parameter)

    def launch(self, algorithm, group):
        """Start the all-reduce: the backend's own, or one of ringzero's by name; ``wait()`` waits for it."""
        if algorithm is None:
            self.wait = dist.all_reduce(self.flat, group=group, async_op=True).wait
        else:
            self.wait = _aside.submit(ringzero.all_reduce, self.flat, algorithm=algorithm, group=group).result
