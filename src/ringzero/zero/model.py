"""What the three stages have in common: parameters in flat vectors, and an optimizer over this rank's shards of them.

    model = ZeroStage1(module, torch.optim.AdamW, lr=1e-3)
    loss_of(model(inputs), targets).backward()
    model.clip_grad_norm_(1.0)
    model.step()
    model.zero_grad()

A stage says when gradients and parameters travel, and how long they stay.
"""

from functools import partial
from math import inf

import torch
import torch.distributed as dist
from torch.utils._pytree import tree_map

from ringzero.data_parallel.buckets import assign
from ringzero.data_parallel.ddp import Replica
from ringzero.zero import state
from ringzero.zero.flat import Flat
from ringzero.zero.optimizers import check_optimizer, parameter_groups
from ringzero.zero.units import parameters_of


class ZeroModel(Replica):
    """``module``, trained by ``optimizer``, a class of torch's; ``**options`` are the optimizer's.

    No parameter has a ``grad`` after ``backward``: the shard of the mean gradient waits for ``step``. The optimizer
    over the shards is ``model.optimizer``; schedulers take it.

    ``groups``           parameter groups as torch's optimizers take them, dicts with "params"
    ``mixed_precision``  ``torch.bfloat16``: module and messages are in it, the optimizer steps what was there before
    ``elementwise``      vouches that an optimizer not of torch's treats each element on its own
    ``bucket_cap_mb``    MiB of parameters that travel together; or
    ``units``            modules whose parameters do, as in stage 3
    ``find_unused``      parameters may go without a gradient, which counts as zeros; otherwise it is a RuntimeError
    ``unused``           names of parameters not to train

    Raises ValueError for an optimizer that needs more than a shard, and when the ranks' modules differ.
    """

    own_shards = False

    def __init__(self, module, optimizer, *, groups=None, mixed_precision=None, elementwise=False, bucket_cap_mb=25,
                 units=None, find_unused=False, unused=(), group=None, **options):  # fmt: skip
        check_optimizer(optimizer, elementwise)
        if mixed_precision not in (None, torch.bfloat16):
            raise ValueError(f"mixed_precision is {mixed_precision}; take torch.bfloat16, which needs no loss scaling")
        if not bucket_cap_mb > 0:
            raise ValueError(f"bucket_cap_mb is {bucket_cap_mb!r}; give a positive number of MiB")
        super().__init__(module, unused=unused, group=group)
        self.unused, self.find_unused, self.mixed_precision = unused, find_unused, mixed_precision
        self.groups = parameter_groups(groups, self.trained)
        self.flats = [self._flat(members) for members in self._divide(units, bucket_cap_mb)]
        if mixed_precision is not None:
            module.to(mixed_precision)  # what is not trained, too
        self._flat_of = {parameter: flat for flat in self.flats for parameter in flat.names}
        self.optimizer_of = partial(optimizer, **options)
        self.optimizer = self.optimizer_of(
            [
                own | {"params": [flat.master for flat in self.flats if not flat.parameters.keys().isdisjoint(names)]}
                for names, own in self.groups
            ]
        )
        self.state_dict, self.load_state_dict = partial(state.of_module, self), partial(state.into_module, self)

    def _divide(self, units, bucket_cap_mb):
        """Lists of parameters that travel together, the last layer's first: so their gradients come."""
        parts = [self.trained] if units is None else parameters_of(units, self.module, self.trained).values()
        cap = bucket_cap_mb if units is None else inf
        for part in reversed(list(parts)):
            for names, _ in self.groups:
                yield from assign([part[name] for name in reversed(part) if name in names], cap)

    def _flat(self, members):
        names = {parameter: name for name, parameter in self.trained.items()}
        return Flat([(names[p], p) for p in members], self.group, self.mixed_precision, self.own_shards)

    def forward(self, *args, **kwargs):
        self.check_unchanged()
        if self.mixed_precision is not None:
            args, kwargs = tree_map(self._cast, (args, kwargs))
        return super().forward(*args, **kwargs)

    def _cast(self, value):
        floating = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(self.mixed_precision) if floating else value

    @torch.no_grad()
    def clip_grad_norm_(self, max_norm):
        """Scale the gradients so that their norm over all ranks is ``max_norm`` at most. Returns the norm it was."""
        shards = [flat.reduced for flat in self.flats if flat.reduced is not None]
        squares = [torch.linalg.vector_norm(shard, dtype=torch.float64).square() for shard in shards]
        total = sum(squares, torch.zeros((), dtype=torch.float64, device=self.flats[0].whole.device))
        dist.all_reduce(total, group=self.group)
        for shard in shards:
            shard.mul_((max_norm / (total.sqrt() + 1e-6)).clamp(max=1).to(shard.dtype))
        return total.sqrt()

    def zero_grad(self, set_to_none=True):
        """Forget the gradients."""
        super().zero_grad()
        for flat in self.flats:
            flat.forget_gradient()

    def optimizer_state_dict(self):
        """The optimizer's ``state_dict``, whole on every rank, as of one process."""
        return state.of_optimizer(self)

    def load_optimizer_state_dict(self, given):
        """Take over an ``optimizer_state_dict``, or one of a plain optimizer over the same parameters."""
        state.into_optimizer(self, given)

    def check_unchanged(self):
        """Raise RuntimeError, with names, if parameters are not those that were sharded: a change would be lost."""
        now = {name: p for name, p in self.module.named_parameters() if p.requires_grad and name not in self.unused}
        changed = [name for name in {**self.trained, **now} if now.get(name) is not self.trained.get(name)]
        changed += [name for flat in self.flats for name in flat.changed()]
        if changed:
            raise RuntimeError(
                f"{', '.join(changed)} changed since the model was sharded: replaced, frozen, unfrozen, or overwritten "
                "where the optimizer has a copy; use load_state_dict for new values, and shard again for what to train"
            )
