"""What the stages have in common: parameters in sharded vectors, and an optimizer over this rank's shards of them.

    model = ZeroStage1(module, torch.optim.AdamW, lr=1e-3)
    loss_of(model(inputs), targets).backward()
    model.clip_grad_norm_(1.0)
    model.step()
    model.zero_grad()

A model is put together from parts:

| part            | decides                                                                        |
|-----------------|--------------------------------------------------------------------------------|
| a stage         | what stays whole on every rank                                                 |
| `ShardedVector` | which memory holds parameters, gradients, and this rank's shards of them       |
| `backward.py`   | when a vector of gradients is reduced, and freed                               |
| `Gatherer`      | when parameters that do not stay whole are gathered, and freed                 |
| `Transport`     | how a vector is reduced or gathered: `transport.py`, `two_level.py`, ...       |
| `Device`, ...   | where the optimizer's copy of the parameters lives and steps: `home.py`        |

What the program may have done in between is looked at by `guards.py`.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import Module, Parameter
from torch.utils._pytree import tree_map

from ringzero.collectives.schedule import chunk_bounds
from ringzero.data_parallel import join as joins
from ringzero.data_parallel.alike import broadcast_state
from ringzero.data_parallel.replica import Replica
from ringzero.data_parallel.structure import Structure
from ringzero.record.eager import not_compiled
from ringzero.zero import backward, clipping, cut, guards, state, stepping
from ringzero.zero.failed import Word
from ringzero.zero.frozen import Frozen, FrozenShards
from ringzero.zero.gather import Gatherer
from ringzero.zero.home import Device
from ringzero.zero.optimizers import (
    as_module,
    call_model_instead,
    check_optimizer,
    check_same,
    refuse_other_optimizers,
    sharded_keys,
)
from ringzero.zero.summary import holds
from ringzero.zero.transport import Transport, transport_in
from ringzero.zero.two_level import Travel
from ringzero.zero.vector import ShardedVector


class ZeroModel(Replica):
    """``module``, or a list of parameters, trained by ``optimizer``, a class of torch's, with its ``**options``.

    After ``backward`` the shard of the mean gradient waits for ``step``. What is in ``parameter.grad`` then raises
    RuntimeError, with the way out, whatever is done with it; ``module.zero_grad()`` forgets the gradient. The optimizer
    over the shards is ``model.optimizer``; schedulers take it. Its ``step``, ``zero_grad``, ``add_param_group``,
    ``state_dict`` and ``load_state_dict`` are the model's: all ranks call them, and a state is whole. Its groups hold
    shards, so nobody finds a parameter of the module, its shape or its norm there; ``groups`` gives some their own
    options. Of a list of parameters there are no buffers, and each rank's stay its own.

    ``groups``           parameter groups as torch's optimizers take them, dicts with "params"
    ``mixed_precision``  ``torch.bfloat16`` or ``float16``: module and messages are in it, the optimizer steps what was
                         there before, and ``state_dict`` has that, of frozen parameters too. Gradients of several
                         passes add up in the type that is stepped. float16 needs loss scaling: ``GradScaler``
    ``elementwise``      vouches that an optimizer not of torch's treats each element on its own
    ``bucket_cap_mb``    MiB of parameters that travel together; or
    ``units``            modules whose parameters do, as in stage 3
    ``find_unused``      parameters may go without a gradient; otherwise it is a RuntimeError. One that has none on any
                         rank is not stepped. So that each can be left out, each travels alone
    ``unused``           names of parameters not to train
    ``algorithm``        how vectors are reduced and gathered: a name in ``ALGORITHMS`` of both, or "backend"; by
                         default what is fastest, NCCL's own collectives and elsewhere ringzero's ring
    ``travel``           more than one level of ranks, or fewer bits on the wire: ``Hybrid()``, ``ZeroPlusPlus()``
    ``home``             where the optimizer's states are: on the device, or ``Host()``, or ``File(folder)``

    Raises ValueError for an optimizer that needs more than a shard, for an unknown ``algorithm``, and when the ranks'
    modules differ; TypeError for an optimizer that is no class of optimizers.
    """

    # Besides optimizer states, which are always sharded. Whole gradients stay until ``zero_grad``; others are freed
    # once they are reduced. Whole parameters are gathered after each step; others by ``gatherer``, before each use.
    keeps_whole: tuple[str, ...] = ()
    gatherer: Gatherer | None = None
    hooks_in_no_sync = True  # gradients add up in the vectors, not in ``parameter.grad``

    def __init__(self, module: Module | Iterable[Parameter], optimizer: type[torch.optim.Optimizer], *,
                 groups: Iterable[dict] | None = None, mixed_precision: torch.dtype | None = None,
                 elementwise: bool = False, bucket_cap_mb: float = 25, units: Iterable[Module] | None = None,
                 find_unused: bool = False, unused: Collection[str] = (), broadcast_buffers: bool = True,
                 algorithm: str | None = None, travel: Travel | None = None, home: Device | None = None,
                 group: dist.ProcessGroup | None = None, **options: Any):  # fmt: skip
        check_optimizer(optimizer, elementwise)
        guards.check_options(mixed_precision, bucket_cap_mb, travel)
        module, groups = as_module(module, groups)
        refuse_other_optimizers(ZeroModel)
        super().__init__(module, unused=unused, broadcast_buffers=broadcast_buffers, group=group)
        guards.refuse_shared_memory(self)
        self.unused, self.find_unused, self.mixed_precision = unused, find_unused, mixed_precision
        self.optimizer_of = partial(optimizer, **options)
        self.groups = cut.grouped(self, groups, self.trained)
        whole = "parameters" in self.keeps_whole
        if travel is not None and self.keeps_whole and not travel.for_all_stages:
            raise ValueError(f"{type(travel).__name__} gathers parameters before each use; take ZeroStage3")
        self.travel, self.algorithm = travel, algorithm
        self.reduces = self._transport(self.group, gathers=whole)
        self.gathers = self.reduces if whole else self._transport(self._new_group(self.group), reduces=False)
        self.shard_group = self.reduces.group  # of the ranks that have shards of one copy
        self.home = home or Device()
        elements = sum(parameter.numel() for parameter in self.trained.values())
        self.home.check(self, chunk_bounds(elements, self.shard_group.size())[1])
        self.units, self.bucket_cap_mb = None if units is None else list(units), bucket_cap_mb
        vectors = cut.vectors_of(self, self.trained, self.groups)
        self.in_order, self.word = backward.in_order(self, vectors), Word(self._own_groups[0])
        self.needs_scaling, self.is_unscaled = mixed_precision is torch.float16, False  # since ``zero_grad``
        self.gradients_wait = False  # whether there are gradients since the last step
        # Whether gradients are reduced inside nodes alone, where there are some: in passes that begin now, as in
        # ``no_sync``; in the present backward pass; and in that of the last forward pass
        self.no_sync_inside_nodes = self.reduces_inside_nodes = self.inside_nodes_forward = False
        self.frozen_shards = FrozenShards({} if whole else cut.frozen_to_shard(self), partial(cut.frozen_vectors, self))
        self.frozen: Frozen | None = None
        if mixed_precision is not None:  # buffers may need their precision, such as angles
            sharded = {*self._names, *self.frozen_shards.parameters.values()}
            named = {name: p for name, p in module.named_parameters() if p not in sharded}
            self.frozen = Frozen(named, mixed_precision, self.group, self._each_rank_s_own)
        groups_of_masters = [own | {"params": cut.masters(names, vectors)} for names, own in self.groups]
        self.optimizer = self.optimizer_of(groups_of_masters)  # type: ignore[call-arg]
        check_same(self.optimizer, self.group)
        self.steps = 0  # how many were made
        self.steps_now = False  # whether the optimizer is called by the model itself
        call_model_instead(self.optimizer, self)
        self.attach()
        self.as_sharded = Structure(module)

    def vectors(self) -> list[ShardedVector]:
        """In the order in which they are reduced. It waits, after the first pass, to learn that order from rank 0."""
        return self.in_order.vectors()

    @property
    def reduces_after_all_gathers(self) -> bool:
        """Whether no gradient is reduced in a backward pass before its last gather has started.

        Ranks that use different units come to a reduction after different gathers. Then each would wait for the other.
        """
        return self.gatherer is not None and self.find_unused

    @property
    def whole_weights(self) -> dict[str, Parameter]:
        return self.trained if "parameters" in self.keeps_whole else {}

    def _transport(self, group: dist.ProcessGroup, reduces: bool = True, gathers: bool = True) -> Transport:
        """How vectors travel in ``group``, to reduce them, to gather them or both."""
        within = partial(transport_in, device=next(iter(self.trained.values())).device, algorithm=self.algorithm)
        if self.travel is None:
            return within(group)
        return self.travel.transport(group, self._new_group, within, reduces, gathers)

    @property
    def sharded_keys(self) -> dict[str, set[str]]:
        """Of each trained parameter: names of the optimizer's states that have a number for each element."""
        keys = [(names, sharded_keys(self.optimizer_of, own)) for names, own in self.groups]
        return {name: of_group for names, of_group in keys for name in names}

    # ---- forward and backward passes

    @not_compiled
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        self._check_usable()
        self.owe_nothing()
        self.inside_nodes_forward = self.no_sync_inside_nodes
        guards.check_unchanged(self)
        if torch.is_grad_enabled():
            guards.check_gradients(self)
        stepping.heed_masters(self)
        if self.mixed_precision is not None:
            args, kwargs = tree_map(self._cast, (args, kwargs))
        return super().forward(*args, **kwargs)

    def _cast(self, value: Any) -> Any:
        floating = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(self.mixed_precision) if floating else value

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes inside only add gradients up on this rank; the next one outside reduces the sum.

        Where gradients do not stay whole there is nothing to add to, so every pass is reduced and shards add up: with
        ``travel=Hybrid()`` inside nodes alone, and the next pass outside takes the sum across nodes.
        """
        before, self.no_sync_inside_nodes = self.no_sync_inside_nodes, "gradients" not in self.keeps_whole
        try:
            with nullcontext() if self.no_sync_inside_nodes else super().no_sync():
                yield
        finally:
            self.no_sync_inside_nodes = before

    backward_begins, gradient_ready, all_ready = backward.backward_begins, backward.gradient_ready, backward.all_ready
    backward_over, abandon, owe_nothing = backward.backward_over, backward.abandon, backward.owe_nothing
    backward_without_data = backward.backward_without_data

    def _who_failed(self, device: torch.device) -> list[bool]:
        return backward.who_failed(self) or super()._who_failed(device)

    def heed_program(self, step: bool = False) -> None:
        self.marks.check_last_pass()
        guards.heed_program(self, step)

    def _forget_gradients(self) -> None:
        self.gradients_wait = False
        for vector in self.vectors():
            vector.forget_gradient()

    # ---- ranks with different amounts of data

    def only_agree(self) -> None:
        """Other ranks add up gradients in no_sync, and know now how many have data."""

    def mean_over(self, ranks: int) -> None:
        """Have gradients divided by ``ranks``."""
        for vector in self.vectors():
            vector.ranks = ranks

    def take_state_of(self, rank: int, uneven: bool) -> None:
        """All ranks stepped the parameters, so only buffers differ."""
        broadcast_state(self.shared(self.module.named_buffers()), rank, self.group)

    # ---- what a program calls, in files of its own

    step, step_with, change, share = stepping.step, stepping.step_with, stepping.change, stepping.share
    whole_parameters, heed_data, leave = stepping.whole_parameters, stepping.heed_data, stepping.leave
    attach, mark_masters = stepping.attach, stepping.mark_masters
    clip_grad_norm_, clip_grad_value_, unscale_ = clipping.clip_grad_norm_, clipping.clip_grad_value_, clipping.unscale_
    state_dict, load_state_dict = state.state_dict, state.load_state_dict
    optimizer_state_dict, load_optimizer_state_dict = state.optimizer_state_dict, state.load_optimizer_state_dict
    add_param_group, join = cut.add_param_group, joins.join

    @property
    def param_groups(self) -> list[dict]:
        """Refused: who looks at gradients there, as torch's ``GradScaler`` does, would find none."""
        raise guards.no_optimizer(self)

    def zero_grad(self, set_to_none: bool = True) -> None:
        with torch._C.DisableTorchFunctionSubclass():  # ``Gone`` would look at each access
            super().zero_grad()
        self.announce("zero_grad")  # after an error what was on its way has ended
        self.is_unscaled = False
        self._forget_gradients()

    def __deepcopy__(self, memo: dict) -> Replica:
        raise guards.no_copy(self)

    def __reduce__(self) -> tuple:
        raise guards.no_copy(self)

    def _holds(self) -> dict[str, str]:
        return super()._holds() | holds(self)

    def _buckets(self) -> list[list[Parameter]]:
        return [list(vector.parameters.values()) for vector in self.vectors()]
