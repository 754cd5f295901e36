"""What the stages have in common: parameters in sharded vectors, and an optimizer over this rank's shards of them.

    model = ZeroStage1(module, torch.optim.AdamW, lr=1e-3)
    loss_of(model(inputs), targets).backward()
    model.clip_grad_norm_(1.0)
    model.step()
    model.zero_grad()

A model is put together from parts:

| part            | decides                                                                    |
|-----------------|----------------------------------------------------------------------------|
| a stage         | what stays whole on every rank                                             |
| `ShardedVector` | which memory holds parameters, gradients, and this rank's shards of them   |
| `InOrder`       | when a vector of gradients leaves to be reduced                            |
| `Travel`        | how a vector is reduced or gathered: `travel.py`, `two_level.py`, ...      |
| `Device`, ...   | where the optimizer's copy of the parameters lives and steps: `home.py`    |
| `Gatherer`      | when parameters that do not stay whole are gathered, and freed             |
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from math import inf
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import Module, Parameter
from torch.utils._pytree import tree_map

from ringzero.collectives.schedule import chunk_bounds
from ringzero.data_parallel.buckets import assign
from ringzero.data_parallel.in_order import InOrder, Wait, as_on_rank_0
from ringzero.data_parallel.join import Joinable
from ringzero.data_parallel.replica import NOT_BACKWARD, Replica, broadcast_state, running_backward
from ringzero.data_parallel.structure import Structure
from ringzero.record.eager import not_compiled
from ringzero.zero import state
from ringzero.zero.failed import Word
from ringzero.zero.frozen import Frozen
from ringzero.zero.gather import Gatherer
from ringzero.zero.home import Device
from ringzero.zero.muon import Muon, uncut
from ringzero.zero.optimizers import (
    Groups,
    as_module,
    by_kind,
    call_model_instead,
    check_optimizer,
    parameter_groups,
    refuse_other_optimizers,
    sharded_keys,
    to_add,
)
from ringzero.zero.travel import Travel, start, travel_of
from ringzero.zero.two_level import Policy
from ringzero.zero.units import parameters_of
from ringzero.zero.vector import ShardedVector

# Where reduced gradients are freed: how many vectors may be on their way while the next one fills, as in FSDP2. Without
# a limit a fast backward pass would run ahead of a slow network, and at its end all gradients would be whole.
IN_FLIGHT = 1


class ZeroModel(Joinable):
    """``module``, or a list of parameters, trained by ``optimizer``, a class of torch's, with its ``**options``.

    After ``backward`` the shard of the mean gradient waits for ``step``. What is in ``parameter.grad`` then raises
    RuntimeError, with the way out, whatever is done with it; ``module.zero_grad()`` forgets the gradient. The optimizer
    over the shards is ``model.optimizer``; schedulers take it. Its ``step``, ``zero_grad`` and ``add_param_group`` are
    the model's.

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
                 algorithm: str | None = None, travel: Policy | None = None, home: Device | None = None,
                 group: dist.ProcessGroup | None = None, **options: Any):  # fmt: skip
        check_optimizer(optimizer, elementwise)
        if mixed_precision not in (None, torch.bfloat16, torch.float16):
            raise ValueError(f"mixed_precision is {mixed_precision}; take torch.bfloat16 or torch.float16")
        if not bucket_cap_mb > 0:
            raise ValueError(f"bucket_cap_mb is {bucket_cap_mb!r}; give a positive number of MiB")
        module, groups = as_module(module, groups)
        refuse_other_optimizers(ZeroModel)
        super().__init__(module, unused=unused, broadcast_buffers=broadcast_buffers, group=group)
        self.unused, self.find_unused, self.mixed_precision = unused, find_unused, mixed_precision
        self.optimizer_of = partial(optimizer, **options)
        self.groups = self._grouped(groups, self.trained)
        first = next(iter(self.trained.values()))
        self._flat = partial(travel_of, device=first.device, algorithm=algorithm)
        if travel is not None and self.keeps_whole and not travel.for_all_stages:
            raise ValueError(f"{type(travel).__name__} gathers parameters before each use; take ZeroStage3")
        self._policy = travel
        self.travel = self._new_travel(self.group, gathers="parameters" in self.keeps_whole)
        self.home = home or Device()
        elements = sum(parameter.numel() for parameter in self.trained.values())
        self.home.settle_in(self, chunk_bounds(elements, self.travel.group.size())[1])
        self.units, self.bucket_cap_mb = None if units is None else list(units), bucket_cap_mb
        vectors = self._cut(self.trained, self.groups)
        self._in_order = InOrder(
            self.trained, vectors, self._start_reducing, self._as_rank_0, find_unused,
            in_flight=None if "gradients" in self.keeps_whole else IN_FLIGHT,
        )  # fmt: skip
        self._is_unscaled = False  # since ``zero_grad``
        self._gradients_wait = False  # whether there are gradients since the last step
        self._word = Word(self._own_groups[0])
        self.frozen: Frozen | None = None
        if mixed_precision is not None:  # buffers may need their precision, such as angles
            named = {name: p for name, p in module.named_parameters() if p not in self._names}
            self.frozen = Frozen(named, mixed_precision, self.group, self._each_rank_s_own)
        groups_of_masters = [own | {"params": masters(names, vectors)} for names, own in self.groups]
        self.optimizer = self.optimizer_of(groups_of_masters)  # type: ignore[call-arg]
        self.steps_now = False  # whether the optimizer is called by the model itself
        call_model_instead(self.optimizer, self)
        self._furnish()
        self._as_sharded = Structure(module)

    def _new_travel(self, group: dist.ProcessGroup, reduces: bool = True, gathers: bool = True) -> Travel:
        """How vectors travel among the ranks of ``group``, which nothing else uses."""
        if self._policy is None:
            return self._flat(group)
        return self._policy.travel(group, self._new_group, self._flat, reduces, gathers)

    def _grouped(self, groups: Iterable[dict] | None, trained: Mapping[str, Parameter]) -> Groups:
        found = parameter_groups(groups, trained)
        if self.optimizer_of.func is not Muon:
            return found
        return by_kind(found, self.module, trained, self.optimizer_of.keywords.get("others_names", ()))

    def _mark_masters(self) -> None:
        """Have a program be told that the gradients it looks for, in the optimizer's groups, are not there."""
        for vector in () if self.home.delayed else self.vectors:  # a delayed step goes on, with gradients there
            vector.mark_master()

    def _holds(self) -> dict[str, str]:
        holds, kinds = super()._holds(), {vector.whole.dtype for vector in self.vectors}
        whole = [*self.keeps_whole, "what is not trained"]
        stepped = {vector.master.dtype for vector in self.vectors}
        shards = [each for each in ("parameters", "gradients") if each not in self.keeps_whole]
        return holds | {
            "whole": f"{', '.join(whole)}; computed with in {_types(kinds)}",
            "sharded": f"{', '.join([*shards, 'optimizer states'])}; stepped in {_types(stepped)}, by "
            f"{type(self.optimizer).__name__} on {type(self.home).__name__}; {self.travel.group.size()} shards, here "
            f"{sum(vector.owned.stop - vector.owned.start for vector in self.vectors):,} numbers",
        }

    def _buckets(self) -> list[list[Parameter]]:
        return [list(vector.parameters.values()) for vector in self.vectors]

    def _furnish(self) -> None:
        """Let home and optimizer know of all vectors."""
        self.home.furnish(self.vectors, self.optimizer)
        self._mark_masters()
        if isinstance(self.optimizer, Muon):
            self.optimizer.attach(self.vectors, self.travel.group)

    @property
    def sharded_keys(self) -> dict[str, set[str]]:
        """Of each trained parameter: names of the optimizer's states that have a number for each element."""
        return {
            name: keys
            for names, own in self.groups
            for keys in [sharded_keys(self.optimizer_of, own)]
            for name in names
        }

    @property
    def vectors(self) -> list[ShardedVector]:
        """In the order in which they are reduced."""
        return self._in_order.vectors

    def _cut(self, trained: dict[str, Parameter], groups: Groups) -> list[ShardedVector]:
        """Vectors of the ``trained`` parameters, the last layer's first: so their gradients come."""
        parts = [trained] if self.units is None else parameters_of(self.units, self.module, trained).values()
        cap = 0 if self.find_unused else self.bucket_cap_mb if self.units is None else inf
        vectors = []
        for part in reversed(list(parts)):
            for names, own in groups:
                named = {name: part[name] for name in reversed(part) if name in names}
                if own.get("kind") == "muon" and self.optimizer_of.keywords.get("exchange") == "owner":
                    for together, owner in uncut(named, self.travel.group.size(), each_alone=self.find_unused):
                        vectors.append(self._vector([named[name] for name in together], owner))
                else:
                    vectors += [self._vector(members) for members in assign(list(named.values()), cap)]
        return vectors

    def _vector(self, parameters: Iterable[Parameter], owner: int | None = None) -> ShardedVector:
        named = {self._names[p]: p for p in parameters}
        own_shard = "parameters" not in self.keeps_whole
        return ShardedVector(
            named, self.travel.group, self.home, self.mixed_precision, own_shard, self.group.size(), owner
        )

    @not_compiled
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        self._check_usable()
        self._owe_nothing()
        self.check_unchanged()
        if self.mixed_precision is not None:
            args, kwargs = tree_map(self._cast, (args, kwargs))
        return super().forward(*args, **kwargs)

    def _owe_nothing(self) -> None:
        """Where units are gathered, after a forward pass that ended with an error: make its backward pass, of zeros.

        Ranks that know of no error make theirs, and would otherwise gather what they need while this one gathers anew.
        Raises RuntimeError, on every rank, if there are such.
        """
        if self.gatherer is not None and self.gatherer.owes_backward and running_backward() == NOT_BACKWARD:
            held = {each: None if each.reduced is None else each.reduced.clone() for each in self.vectors}
            self.gatherer.begin_without_gradients()
            self._stays, self._failed = False, True
            self._in_order.begin(self.gathers_first, self._last)
            try:
                self.abandon()
            finally:
                self._end_of_backward()
            for vector, reduced in held.items():  # all ranks had the error, so nothing was added
                vector.take_back(reduced)

    def _cast(self, value: Any) -> Any:
        floating = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(self.mixed_precision) if floating else value

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes inside only add gradients up on this rank; the next one outside reduces the sum.

        Where gradients do not stay whole there is nothing to add to, so every pass is reduced and shards add up.
        """
        with super().no_sync() if "gradients" in self.keeps_whole else nullcontext():
            yield

    @property
    def gathers_first(self) -> bool:
        """Whether no gradient is reduced in the backward pass before its last gather has started.

        Ranks that use different units come to a reduction after different gathers. Then each would wait for the other.
        """
        return self.gatherer is not None and self.find_unused

    def backward_begins(self) -> None:
        self._heed_program()
        self.announce("backward_without_data" if self._syncing else "only_agree")
        self._in_order.begin(self.gathers_first or not self._syncing, self._last)

    @property
    def _last(self) -> int:
        """How many vectors wait for the end of the pass: those from the last one on that each rank has a shard of.

        That one says whether the pass ended with an error (``failed.py``). 0 where there is none.
        """
        for place, vector in enumerate(reversed(self.vectors), 1):
            if vector.layout.owner is None and vector.layout.numel >= vector.layout.ranks:
                return place
        return 0

    def _heed_program(self, step: bool = False) -> None:
        """Forget the gradients that the program forgot, and raise RuntimeError where a step would not be what it means.

        With ``step`` no backward pass is going on.
        """
        self._check_mark_of_last_pass()
        forgot = [vector.heed_program(step) for vector in self.vectors]
        if any(forgot) and self._joining is not None:
            raise RuntimeError(
                "inside join gradients were forgotten without the ranks that are out of data; call the zero_grad() of "
                f"the {type(self).__name__}, not of its module"
            )

    def gradient_ready(self, parameter: Parameter) -> None:
        vector = self._in_order.vector_of[parameter]
        if len(parameter._post_accumulate_grad_hooks) > 1 and (parameter in vector.added or vector.reduced is not None):
            raise RuntimeError(
                f"a post-accumulate-grad hook of the program is on {self._names[parameter]}, and in a second backward "
                f"pass before a step it would find the gradient of this pass alone: a {type(self).__name__} adds them "
                "up elsewhere. Take register_hook, which is for the gradient of one pass, or one pass a step"
            )
        vector.used = True
        self._in_order.ready(parameter)
        if self.gatherer is not None:
            self.gatherer.gradient_ready(parameter)

    def all_ready(self) -> None:
        if self.gatherer is not None:
            self.gatherer.end()  # first: another rank may need it to go on
        self._in_order.complete()
        self._gradients_wait = True
        if not self._stays:
            self._in_order.start_full_ones(to_the_end=True)

    def backward_over(self) -> None:
        if not self._stays:
            self._all_arrive()
            self._in_order.learn_order()

    def _all_arrive(self) -> None:
        """Raises RuntimeError, on every rank, if some ranks ended this pass with an error and others did not."""
        for _ in self._in_order.arrivals():
            pass
        if self.find_unused:
            self._leave_unused_alone()
        if self._last:
            self.check_mark(self._word.first(), at_once=not self._in_order.order_known)
        else:
            self._ask_who_failed(self.vectors[0].whole)

    def _who_failed(self, device: torch.device) -> list[bool]:
        return self._word.of_ranks() if self._last else super()._who_failed(device)

    def _forget_gradients(self) -> None:
        self._gradients_wait = False
        for vector in self.vectors:
            vector.forget_gradient()

    def backward_without_data(self) -> None:
        """Take part in the other ranks' backward pass with zeros."""
        self._stays = False
        self._in_order.begin(last=self._last)
        self._in_order.fill()
        self.all_ready()
        self.backward_over()

    def only_agree(self) -> None:
        """Other ranks add up gradients in no_sync, and know now how many have data."""

    def mean_over(self, ranks: int) -> None:
        """Have gradients divided by ``ranks``."""
        for vector in self.vectors:
            vector.ranks = ranks

    def take_state_of(self, rank: int, uneven: bool) -> None:
        """All ranks stepped the parameters, so only buffers differ."""
        broadcast_state(self.shared(self.module.named_buffers()), rank, self.group)

    def _leave_unused_alone(self) -> None:
        """What no rank has had a gradient of since ``zero_grad`` has none, instead of zeros."""
        agreed = self._on_any_rank((vector.used for vector in self.vectors), self.vectors[0].whole.device)
        for vector, used in zip(self.vectors, agreed, strict=True):
            if not used:
                vector.forget_gradient()

    def abandon(self) -> None:
        if self.gatherer is not None:
            for unit in () if self.gathers_first else self.gatherer.rest():
                self._in_order.fill(each for vector in unit.vectors for each in vector.parameters.values())
            self.gatherer.end()
        self._in_order.fill()
        if not self._stays:
            self._in_order.start_full_ones(to_the_end=True)
            self._all_arrive()

    def _start_reducing(self, vector: ShardedVector) -> Wait:
        vector.convert_gradient()
        over = vector.let_go if "gradients" in self.keeps_whole else vector.free_gradient
        job = partial(vector.reduce, self.travel)
        if len(self._in_order.waits) == len(self.vectors) - self._last:
            self._word.before(vector, self._failed)
            job = partial(job, arrived=self._word.arrived)
        return start(self.travel, job, vector.whole.device, after=over)

    def _as_rank_0(self, came: list[Parameter]) -> Callable[[], list[ShardedVector]]:
        """The vectors in the order in which rank 0's were filled."""
        last_first = dict.fromkeys(self._in_order.vector_of[parameter] for parameter in reversed(came))
        vectors = self.vectors
        weights = self.trained if "parameters" in self.keeps_whole else {}
        order = as_on_rank_0([vectors.index(vector) for vector in reversed(last_first)], self.group, weights)
        return lambda: [vectors[i] for i in order()]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Step this rank's shards with their gradients, and let the ranks share what they stepped.

        ``closure`` computes the loss and its gradients first, as torch's optimizers take it. Returns what it returns.
        """
        loss = None if closure is None else closure()
        options = [{k: v for k, v in group.items() if k != "params"} for group in self.optimizer.param_groups]
        self.announce("step_with", options)  # only schedulers of ranks that have data go on
        self._step()
        return loss

    def step_with(self, options: list[dict]) -> None:
        """Step with these ``options`` of the optimizer's parameter groups."""
        for group, given in zip(self.optimizer.param_groups, options, strict=True):
            group.update(given)
        self._step()

    @torch.no_grad()
    def _step(self) -> None:
        self._check_usable()
        self._owe_nothing()
        self.check_unchanged()
        self._heed_program(step=True)
        self.heed_data()
        if any(vector.added for vector in self.vectors):
            raise RuntimeError("gradients added up in no_sync were not reduced; make the last backward pass outside it")
        if self.mixed_precision is torch.float16 and not self._is_unscaled:
            raise RuntimeError(
                "a step in float16 without loss scaling: gradients below 6e-8 are zero there. Take zero.GradScaler, "
                "and its step(model) in place of model.step(); or mixed_precision=torch.bfloat16"
            )
        for vector in () if self.home.delayed else self.vectors:
            vector.master.grad = None
        self.steps_now = True
        try:
            self.home.step(self.optimizer, self.vectors)
        finally:
            self.steps_now = False
            self._mark_masters()
        self._gradients_wait = False
        self.share()

    @torch.no_grad()
    def change(self, of_vector: Callable[[ShardedVector], None]) -> None:
        """Call ``of_vector`` for each vector, which may write to its master and states; then share what it wrote."""
        self.heed_data()
        self.home.change(self.vectors, of_vector)
        self.share()

    @torch.no_grad()
    def share(self) -> None:
        """Bring the module's parameters up to date with what the ranks' optimizers hold."""
        for vector in self.vectors:
            self.home.bring_back(vector)
            vector.secondary = None
            if "parameters" in self.keeps_whole:
                vector.gather(self.travel)

    @torch.no_grad()
    def clip_grad_norm_(
        self, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
    ) -> torch.Tensor:
        """Scale the gradients so that their norm over all ranks is ``max_norm`` at most. Returns the norm it was.

        Arguments are those of ``torch.nn.utils.clip_grad_norm_``: ``norm_type`` is positive or ``inf``; a norm that is
        not finite is a RuntimeError, on every rank, with ``error_if_nonfinite``.
        """
        if not norm_type > 0:
            raise ValueError(f"norm_type is {norm_type!r}; give a positive number, or inf")
        self._heed_program(step=True)
        self.announce("clip_grad_norm_", float(max_norm), norm_type, error_if_nonfinite)
        self.home.settle()
        shards = [vector.reduced for vector in self.vectors if vector.reduced is not None]
        largest = norm_type == inf
        device = self.vectors[0].whole.device
        norms = [
            torch.linalg.vector_norm(shard, norm_type, dtype=torch.complex128 if shard.is_complex() else torch.float64)
            for shard in shards
            if shard.numel()
        ]
        nothing = torch.zeros(1, dtype=torch.float64, device=device)
        each = torch.stack(norms).to(device) if norms else nothing
        total = each.max() if largest else each.pow(norm_type).sum()
        dist.all_reduce(total, op=dist.ReduceOp.MAX if largest else dist.ReduceOp.SUM, group=self.travel.group)
        norm = total if largest else total.pow(1 / norm_type)
        if error_if_nonfinite and not norm.isfinite():
            raise RuntimeError(f"the norm of the gradients is {norm.item()}, so they cannot be clipped")
        factor = (max_norm / (norm + 1e-6)).clamp(max=1)
        for vector in self.vectors:
            vector.change_gradient(lambda shard: shard.mul_(factor.to(shard)))
        return norm

    @torch.no_grad()
    def clip_grad_value_(self, clip_value: float) -> None:
        """Clamp each number of the gradients to ``-clip_value`` to ``clip_value``."""
        self._heed_program(step=True)
        self.announce("clip_grad_value_", float(clip_value))
        self.home.settle()
        for vector in self.vectors:
            vector.change_gradient(lambda shard: shard.clamp_(-clip_value, clip_value))

    @torch.no_grad()
    def unscale_(self, factor: float) -> bool:
        """Multiply the gradients by ``factor``. Returns whether all are finite, on all ranks."""
        self._heed_program(step=True)
        self.announce("unscale_", factor)
        self._is_unscaled = True
        self.home.settle()
        for vector in self.vectors:
            vector.change_gradient(lambda shard: shard.mul_(factor))
        shards = [vector.reduced for vector in self.vectors if vector.reduced is not None]
        bad = torch.tensor(0.0, device=self.vectors[0].whole.device)
        for shard in shards:
            bad = bad.maximum((~shard.isfinite()).any().to(bad))
        dist.all_reduce(bad, op=dist.ReduceOp.MAX, group=self.group)
        return not bad

    @property
    def param_groups(self) -> list[dict]:
        """Refused: who looks at gradients there, as torch's ``GradScaler`` does, would find none."""
        raise TypeError(
            f"a {type(self).__name__} is no optimizer, and each rank has other gradients; schedulers take "
            "model.optimizer, and scaled losses ringzero.zero.GradScaler"
        )

    def add_param_group(self, group: dict) -> None:
        """Train more of the module's parameters, such as what was unfrozen. All ranks must call it, between steps.

        ``group`` is a parameter group as torch's optimizers take it. Raises ValueError for a parameter that is not in
        the module, is frozen, or is trained already, and where states are in files.
        """
        self._check_usable()
        self.home.check_takes_more()
        new = to_add(group, self.module, self.trained)
        added = self._grouped([group], new)
        if self.frozen is not None:
            self.frozen.give_back(set(new))  # so that the optimizer's copy is as precise as the others
        self._train(new)
        self.groups += added
        vectors = self._cut(new, added)
        self._in_order.add(vectors)
        for of_group, own in added:
            add = type(self.optimizer).add_param_group
            add(self.optimizer, own | {"params": masters(of_group, vectors)})
        self._furnish()

    @contextmanager
    def whole_parameters(self, write: bool = False) -> Iterator[None]:
        """Inside, every parameter is whole, to be read outside of a forward pass. All ranks must enter it together.

        With ``write`` changes made in place stay. All ranks must make the same, since each keeps those of its shard.
        Without it, the next step refuses them where the optimizer has a copy of its own.
        """
        self._check_usable()
        self.check_unchanged()
        self.heed_data()
        with nullcontext() if self.gatherer is None else self.gatherer.all_whole():
            before = {vector: vector.whole[vector.owned].clone() for vector in self.vectors} if write else {}
            yield
            if write:
                with torch.no_grad():
                    self.home.change(self.vectors, lambda vector: vector.take_over_whole(before[vector]))
        if write:
            self.share()

    def zero_grad(self, set_to_none: bool = True) -> None:
        with torch._C.DisableTorchFunctionSubclass():  # ``Gone`` would look at each access
            super().zero_grad()
        self.announce("zero_grad")  # after an error what was on its way has ended
        self._is_unscaled = False
        self._forget_gradients()

    def leave(self) -> None:
        """Leave the module whole, with what was stepped, as one process would have it. All ranks must call it.

        So does a module that is wrapped again. Raises RuntimeError if there are gradients that no step has used yet.
        """
        self._heed_program()
        if self._gradients_wait and any(vector.added or vector.reduced is not None for vector in self.vectors):
            raise RuntimeError(
                f"gradients in this {type(self).__name__} wait for a step, and would be lost; call its step(), or its "
                "zero_grad(), before you leave it or wrap the module again"
            )
        if lost := [name for vector in self.vectors for name in vector.overwritten()]:
            raise RuntimeError(
                f"{', '.join(lost)} overwritten since the model was sharded, where the optimizer has a copy that would "
                f"come back now; use the load_state_dict() of the {type(self).__name__}, not of its module"
            )
        self.heed_data()
        trained = state.trained_values(self)
        if self.frozen is not None:
            self.frozen.give_back()
        if self.gatherer is not None:
            self.gatherer.leave()
        for vector in self.vectors:
            vector.leave()
        for name, parameter in self.trained.items():
            parameter.data = trained[name].to(self._in_order.vector_of[parameter].whole.device, copy=True)
        super().leave()

    def __deepcopy__(self, memo: dict) -> Replica:
        raise TypeError(self._no_copy())

    def __reduce__(self) -> tuple:
        raise TypeError(self._no_copy())

    def _no_copy(self) -> str:
        return (
            f"a {type(self).__name__} cannot be copied or pickled: each rank has a shard of it. Load its state_dict(), "
            "which is whole, into a module of your own; zero.checkpoint saves it in shards"
        )

    def state_dict(self) -> dict[str, torch.Tensor]:  # type: ignore[override]
        """The module's ``state_dict``, whole on every rank, trained parameters in the precision they are stepped in."""
        self.heed_data()
        return state.of_module(self)

    def load_state_dict(self, given: Mapping[str, torch.Tensor], strict: bool = True, assign: bool = False) -> None:
        """Take over a module's ``state_dict``. Raises ValueError, and changes nothing, where it does not fit.

        Raises TypeError for what torch's may do and this does not: leave some as they are, or assign new parameters.
        """
        if assign:
            raise TypeError(
                f"assign is {assign}, and the parameters of a {type(self).__name__} lie in vectors that are sharded; "
                "leave it out, and the values are copied there"
            )
        if not strict:
            raise TypeError(f"strict is {strict}, and all ranks take over all; give model.state_dict() | state")
        state.into_module(self, given)

    def optimizer_state_dict(self) -> dict:
        """The optimizer's ``state_dict``, whole on every rank, as of one process."""
        return state.of_optimizer(self)

    def load_optimizer_state_dict(self, given: Mapping) -> None:
        """Take over an ``optimizer_state_dict``, or one of a plain optimizer over the same parameters.

        Raises ValueError, and changes nothing, where it does not fit.
        """
        state.into_optimizer(self, given)

    @torch.no_grad()
    def heed_data(self) -> None:
        """Take over what the program wrote to parameters by ``data``, of which the masters do not know."""
        for vector in self.vectors:
            vector.heed_data()

    def check_unchanged(self) -> None:
        """Raise RuntimeError, with names, if parameters are not those that were sharded: a change would be lost."""
        changed = []
        if self._as_sharded.differs or any(parameter.requires_grad for parameter in self._frozen):
            now = dict(self.module.named_parameters())
            ours = {*self.trained, *self.unused}
            if unfrozen := [name for name, p in now.items() if p.requires_grad and name not in ours]:
                raise RuntimeError(
                    f"{', '.join(unfrozen)} unfrozen since the model was sharded, so the optimizer has no shard of it; "
                    "call add_param_group for it on every rank"
                )
            changed = [name for name, parameter in self.trained.items() if now.get(name) is not parameter]
            if not changed:
                self._as_sharded = Structure(self.module)
        changed += [name for vector in self.vectors for name in vector.changed()]
        if changed:
            raise RuntimeError(
                f"{', '.join(changed)} changed since the model was sharded: replaced, or overwritten where the "
                "optimizer has a copy; use load_state_dict for new values, or whole_parameters(write=True)"
            )


def _types(kinds: Iterable[torch.dtype]) -> str:
    return ", ".join(sorted(str(kind).removeprefix("torch.") for kind in kinds))


def masters(names: Iterable[str], vectors: Iterable[ShardedVector]) -> list[Parameter]:
    """What an optimizer steps in place of the parameters of these ``names``."""
    return [vector.master for vector in vectors if not vector.parameters.keys().isdisjoint(names)]
