"""A sharded vector: parameters that travel together, their gradients, and the shards of both that this rank owns."""

from collections.abc import Callable, Mapping

import torch
import torch.distributed as dist
from torch.nn import Parameter

from ringzero.data_parallel.vector import Vector, dense
from ringzero.record.memory import label
from ringzero.zero.gone import give_back, take_away
from ringzero.zero.sharding import Layout
from ringzero.zero.travel import Travel


class ShardedVector(Vector):
    """``parameters``, all of one type, moved into one vector, of which this rank owns a shard. All tensors are 1-D:

    ``whole``     the parameters; each is a view of it
    ``shard``     this rank's part of them, in the memory of ``whole``, or with ``own_shard`` in its own
    ``master``    what the optimizer steps, as ``make_master(original, shard)`` has it: the shard, or a copy of it from
                  before it got the type ``dtype``
    ``gradient``  this rank's gradients over the number of ranks, as they come in; or None
    ``reduced``   this rank's shard of their sum over the ranks, in the memory of ``gradient`` or in its own; or None
    """

    def __init__(self, parameters: Mapping[str, Parameter], group: dist.ProcessGroup,
                 make_master: Callable[[torch.Tensor, torch.Tensor], Parameter],
                 dtype: torch.dtype | None = None, own_shard: bool = False):  # fmt: skip
        super().__init__(parameters, group.size())
        self.group = group
        self.layout = Layout(tuple((name, tuple(p.shape)) for name, p in self.parameters.items()), group.size())
        self.owned = self.layout.shard(group.rank())
        original = torch.cat([p.detach().reshape(-1) for p in self.parameters.values()])
        self.whole = original.to(dtype or original.dtype)
        self.shard = self.whole[self.owned].clone() if own_shard else self.whole[self.owned]
        self.own_shard = own_shard
        self.master = make_master(original[self.owned], self.shard)
        self.reduced: torch.Tensor | None = None
        self.used = False  # whether a gradient came since ``forget_gradient``, on this rank or on another
        self.added: set[Parameter] = set()  # whose gradients are in ``gradient`` and not in ``reduced`` yet
        self._nothing = self.whole.new_empty(0)
        self._note_versions()
        self.show_whole()

    def put(self, parameter: Parameter) -> None:
        """Add ``parameter.grad`` to ``gradient`` and forget it; none counts as zeros."""
        if self.reduced is not None and not self.added:
            self.free_gradient()  # a second backward pass before a step: ``reduced`` adds up
        if self.gradient is None:
            label(self.hold_gradient(), "gradients")
        if parameter not in self.added:
            super().put(parameter)
        else:
            if parameter.grad is not None:
                self.views[parameter].add_(dense(parameter.grad), alpha=1 / self.ranks)
            self.missing.discard(parameter)
        parameter.grad = None
        self.added.add(parameter)

    def reduce(self, travel: Travel) -> None:
        """Add this rank's shard of the sum of all ranks' ``gradient`` to ``reduced``; the rest of it is worthless."""
        assert self.gradient is not None  # it is full
        shard = travel.reduce(self.gradient)
        self.reduced = shard if self.reduced is None else self.reduced.add_(shard)
        self.added = set()

    def free_gradient(self) -> None:
        """Keep this rank's shard of the sum alone."""
        if self.gradient is not None:
            self.reduced = self.reduced.clone()
            label(self.reduced, "gradients")
        self.gradient, self.views = None, {}

    def unscale(self, factor: float) -> None:
        """Multiply ``reduced`` by ``factor``, in the precision of the master."""
        if self.reduced is not None:
            self.reduced = self.reduced.to(self.master.dtype).mul_(factor)

    def forget_gradient(self) -> None:
        """Forget what was added up; the memory stays."""
        self.reduced, self.added, self.used = None, set(), False

    def gather(self, travel: Travel) -> None:
        """Fill ``whole`` with all ranks' shards."""
        label(self.whole, "parameters")
        if self.own_shard:
            label(self.shard, "parameters")
            self.whole[self.owned] = self.shard
        travel.gather(self.whole)

    def show_whole(self) -> None:
        """Let each parameter be a view of ``whole``."""
        for name, view in self.layout.views(self.whole).items():
            give_back(self.parameters[name])
            self.parameters[name].data = view

    def free_whole(self) -> None:
        """Give the memory of ``whole`` back: the parameters are empty."""
        for name, parameter in self.parameters.items():
            parameter.data = self._nothing
            take_away(parameter, name, self._shapes[parameter])
        self.whole.untyped_storage().resize_(0)  # what autograd saved refers to it, and finds it filled again later

    def make_whole(self) -> None:
        """Take memory for ``whole`` again, to be filled, and then shown."""
        self.whole.untyped_storage().resize_(self.whole.nbytes)

    def take_over_whole(self) -> None:
        """Have the master say what this rank's part of ``whole`` says, where that was changed."""
        here, before = self.whole[self.owned], self.master.to(self.whole.dtype)
        self.master.copy_(torch.where(here == before, self.master, here.to(self.master.dtype)))
        self._note_versions()

    def _note_versions(self) -> None:
        self._versions = {name: parameter._version for name, parameter in self.parameters.items()}

    def changed(self) -> list[str]:
        """Names of parameters whose values the next step would lose.

        These are not views of ``whole`` any more, or were written to in place while another copy, the master or this
        rank's own shard, is the one that counts.
        """
        here, copied = self.whole.untyped_storage().data_ptr(), self.own_shard or self.whole.dtype != self.master.dtype
        return [
            name
            for name, parameter in self.parameters.items()
            if parameter.untyped_storage().data_ptr() != here or (copied and parameter._version != self._versions[name])
        ]
