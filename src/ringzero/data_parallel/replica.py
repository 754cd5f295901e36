"""What all data parallelism has: copies of one model, and hooks where their gradients can be averaged.

Copies that start equal, and step with the mean of the gradients of all ranks' parts of a batch, stay equal: N ranks do
what one would do on the whole batch.
"""

from contextlib import contextmanager
from itertools import zip_longest

import torch
import torch.distributed as dist


class Replica(torch.nn.Module):
    """``module`` with hooks: subclasses say what to do when a gradient is ready and when the backward pass is over.

    All ranks get rank 0's parameters and buffers, frozen ones too. ``unused`` names parameters that never get a
    gradient. The ``state_dict`` is the module's own. Raises ValueError when the module has nothing to train, ``unused``
    names what it does not have, or the ranks' modules differ: the first difference is named.
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
        self._syncing, self._in_backward = True, False
        for parameter in self.trained.values():
            parameter.register_post_accumulate_grad_hook(self._hook)
        self.state_dict, self.load_state_dict = module.state_dict, module.load_state_dict

    def forward(self, *args, **kwargs):
        self._in_backward = False  # the last backward pass may have ended in an exception
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
            if not self._in_backward:
                self._in_backward = True
                self.backward_begins()
                torch.autograd.Variable._execution_engine.queue_callback(self._after_backward)
            self.gradient_ready(parameter)

    def _after_backward(self):
        self._in_backward = False
        self.backward_over()

    backward_begins = gradient_ready = backward_over = lambda *_: None  # for subclasses


def broadcast_state(module, root, group):
    """Give every rank the parameters and buffers of rank ``root`` of the group."""
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor.detach(), group_src=root, group=group)


def check_alike(module, group):
    """Raise ValueError, on every rank, naming the first parameter or buffer in which a rank differs from rank 0."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    everyone = [None] * group.size()
    mine = [f"{name}: {tuple(t.shape)} {t.dtype}{' trained' * t.requires_grad}" for name, t in tensors]
    dist.all_gather_object(everyone, mine, group=group)
    for rank, theirs in enumerate(everyone):
        for first, other in zip_longest(everyone[0], theirs, fillvalue="nothing more"):
            if first != other:
                raise ValueError(f"the ranks' modules differ: rank 0 has {first}, rank {rank} has {other}")
