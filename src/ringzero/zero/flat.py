"""Parameters that travel together: one vector of them, one of their gradients, and the shards that this rank owns."""

import torch

import ringzero
from ringzero.memory import label
from ringzero.zero.sharding import Layout


class Flat:
    """``named`` parameters, all of one type, moved into one vector, of which this rank owns a shard. All are 1-D:

    ``whole``      the parameters; each is a view of it
    ``shard``      this rank's part of them, in the memory of ``whole`` or in its own
    ``master``     what the optimizer steps: the shard, or with ``mixed_precision`` its original
    ``gradient``   this rank's gradients over the number of ranks, as they come in; or None
    ``reduced``    this rank's shard of their sum over the ranks, in the memory of ``gradient`` or in its own; or None
    """

    def __init__(self, named, group, mixed_precision=None, own_shard=False):
        self.parameters, self.group = dict(named), group
        self.names = {parameter: name for name, parameter in self.parameters.items()}
        self.layout = Layout(tuple((name, tuple(p.shape)) for name, p in self.parameters.items()), group.size())
        self.owned = self.layout.shard(group.rank())
        original = torch.cat([p.detach().reshape(-1) for p in self.parameters.values()])
        self.whole = original.to(mixed_precision or original.dtype)
        self.shard = self.whole[self.owned].clone() if own_shard else self.whole[self.owned]
        self.own_shard, self._nothing = own_shard, self.whole.new_empty(0)
        self.mixed = self.whole is not original
        self.master = torch.nn.Parameter(original[self.owned].clone() if self.mixed else self.shard)
        self.gradient = self.reduced = None
        self.added = set()  # parameters that are in ``gradient``
        self._versions = {name: parameter._version for name, parameter in self.parameters.items()}
        self.show_whole()

    def show_whole(self):
        """Let each parameter be a view of ``whole``."""
        for name, view in self.layout.views(self.whole).items():
            self.parameters[name].data = view

    def add(self, parameter):
        """Move ``parameter.grad`` into ``gradient``; none counts as zeros."""
        if self.reduced is not None and not self.added:
            self.free_gradient()  # a second backward pass before a step: ``reduced`` adds up
        if self.gradient is None:
            self.gradient = torch.empty_like(self.whole)
            self._gradients = self.layout.views(self.gradient)
            label(self.gradient, "gradients")
        view, ranks = self._gradients[self.names[parameter]], self.group.size()
        if parameter not in self.added:
            view.zero_() if parameter.grad is None else torch.div(parameter.grad, ranks, out=view)
        elif parameter.grad is not None:
            view.add_(parameter.grad, alpha=1 / ranks)
        parameter.grad = None
        self.added.add(parameter)

    def reduce_gradient(self):
        """Sum ``gradient`` over the ranks; all of it but this rank's shard is worthless afterwards."""
        shard = ringzero.reduce_scatter(self.gradient, group=self.group)
        self.reduced = shard if self.reduced is None else self.reduced.add_(shard)
        self.added = set()

    def free_gradient(self):
        """Keep this rank's shard of the sum alone."""
        if self.gradient is not None:
            self.reduced = self.reduced.clone()
            label(self.reduced, "gradients")
        self.gradient = self._gradients = None

    def forget_gradient(self):
        """Forget what was added up; the memory stays."""
        self.reduced, self.added = None, set()

    def gather(self, group=None):
        """Fill ``whole`` with all ranks' shards."""
        label(self.whole, "parameters")
        if self.own_shard:
            label(self.shard, "parameters")
            self.whole[self.owned] = self.shard
        ringzero.all_gather(self.whole, group=group or self.group)

    def free_whole(self):
        """Give the memory of ``whole`` back: the parameters are empty."""
        for parameter in self.parameters.values():
            parameter.data = self._nothing
        self.whole.untyped_storage().resize_(0)  # what autograd saved refers to it, and finds it filled again later

    def make_whole(self):
        """Take memory for ``whole`` again, to be filled."""
        self.whole.untyped_storage().resize_(self.whole.nbytes)
        self.show_whole()

    def changed(self):
        """Names of parameters that are no view of ``whole`` now, or were written to though it is a copy that counts."""
        here, copied = self.whole.untyped_storage().data_ptr(), self.mixed or self.own_shard
        return [
            name
            for name, parameter in self.parameters.items()
            if parameter.untyped_storage().data_ptr() != here or (copied and parameter._version != self._versions[name])
        ]
