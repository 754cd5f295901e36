"""ZeRO in plain torch: what the library's stages do, for reading. Nothing here comes from the rest of the library.

    zero = Zero3(model, lr=1e-3)
    loss_of(model(inputs), targets).backward()
    zero.step()

One backward pass a step, on the default process group, in the model's own types; every trained parameter gets a
gradient. Frozen parameters stay whole on every rank (the library's stage 3 shards them, too).

Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020.
"""

from functools import partial

import torch
import torch.distributed as dist
from torch import nn


class Layer:
    """Parameters of a module, end to end in one vector. Each rank owns a shard."""

    def __init__(self, module, parameters):
        self.rank, self.n = dist.get_rank(), dist.get_world_size()
        self.module, self.parameters = module, parameters
        self.whole = self.end_to_end([p.detach() for p in self.parameters])
        sizes = [p.numel() for p in self.parameters]
        pieces = self.whole[: sum(sizes)].split(sizes)
        for p, piece in zip(self.parameters, pieces, strict=True):
            p.data = piece.view_as(p)  # a view: no memory of its own
        shards = self.whole.chunk(self.n)
        self.shard = nn.Parameter(shards[self.rank])  # also a view

    def end_to_end(self, tensors):
        """One vector of all their numbers, and zeros up to a multiple of N."""
        vector = torch.cat([tensor.flatten() for tensor in tensors])
        return nn.functional.pad(vector, (0, -len(vector) % self.n))

    def reduce_gradients(self):
        """Keep the shard of the mean gradient over all ranks, and nothing else."""
        whole = self.end_to_end([p.grad for p in self.parameters])
        for p in self.parameters:
            p.grad = None
        mine = torch.empty_like(self.shard)
        dist.reduce_scatter_tensor(mine, whole)  # sums over ranks, my shard
        self.shard.grad = mine / self.n

    def gather_parameters(self):
        """Fill the whole vector with all ranks' shards."""
        dist.all_gather_into_tensor(self.whole, self.shard.detach())


def layers_of(model):
    """A layer for each child of the model; what is in no child, or in several, is the model's own."""
    for tensor in [*model.parameters(), *model.buffers()]:
        dist.broadcast(tensor.detach(), src=0)  # all start with rank 0's
    owners = {}
    for child in model.children():
        for p in child.parameters():
            owners[p] = model if p in owners else child
    owned = {}
    for p in model.parameters():
        if p.requires_grad:
            owned.setdefault(owners.get(p, model), []).append(p)
    return [Layer(module, parameters) for module, parameters in owned.items()]


class Zero0:
    """Plain data parallelism: each rank has everything."""

    def __init__(self, model, optimizer=torch.optim.AdamW, **options):
        self.model, self.layers = model, layers_of(model)
        self.trained = [p for layer in self.layers for p in layer.parameters]
        self.optimizer = optimizer(self.trained, **options)

    def step(self):
        for p in self.trained:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
        self.optimizer.step()
        self.optimizer.zero_grad()


class Zero1:
    """Each rank has the optimizer's states of its shards only."""

    def __init__(self, model, optimizer=torch.optim.AdamW, **options):
        self.model, self.layers = model, layers_of(model)
        shards = [layer.shard for layer in self.layers]
        self.optimizer = optimizer(shards, **options)

    def step(self):
        """Call it after backward()."""
        for layer in self.layers:
            layer.reduce_gradients()
        self.optimizer.step()  # an N-th of the parameters
        for layer in self.layers:
            layer.gather_parameters()
        self.optimizer.zero_grad()


class Zero2(Zero1):
    """Also the gradients of its shards only."""

    def __init__(self, model, *optimizer, **options):
        super().__init__(model, *optimizer, **options)
        for layer in self.layers:
            hook = partial(self.gradient_ready, layer)
            for p in layer.parameters:
                p.register_post_accumulate_grad_hook(hook)

    def gradient_ready(self, layer, parameter):
        """Called within backward(), for each parameter whose gradient is complete."""
        if all(p.grad is not None for p in layer.parameters):
            self.backward_over(layer)

    def backward_over(self, layer):
        layer.reduce_gradients()

    def step(self):
        self.optimizer.step()
        for layer in self.layers:
            layer.gather_parameters()
        self.optimizer.zero_grad()


class Zero3(Zero2):
    """Also the parameters of its shards only, except while a layer computes."""

    def __init__(self, model, *optimizer, **options):
        super().__init__(model, *optimizer, **options)
        for layer in self.layers:
            layer.shard.data = layer.shard.detach().clone()  # memory of its own
            self.free(layer)
            layer.module.register_forward_pre_hook(partial(self.gather, layer))
            layer.module.register_forward_hook(partial(self.free, layer))
            layer.module.register_full_backward_pre_hook(partial(self.gather, layer))

    def gather(self, layer, *_):
        layer.whole.untyped_storage().resize_(layer.whole.nbytes)
        layer.gather_parameters()

    def free(self, layer, *_):
        layer.whole.untyped_storage().resize_(0)

    def backward_over(self, layer):
        layer.reduce_gradients()
        self.free(layer)

    def step(self):
        self.optimizer.step()  # the next forward pass gathers what changed
        self.optimizer.zero_grad()


PLAIN = {0: Zero0, 1: Zero1, 2: Zero2, 3: Zero3}
