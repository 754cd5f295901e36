"""A replica: one rank's copy of the model, whose gradients are shared with the other ranks as they come."""

import copy
import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import zip_longest
from typing import Any, cast
from weakref import ref

import torch
import torch.distributed as dist
from torch.nn import Module, Parameter
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from ringzero.collectives import event_threads
from ringzero.collectives.torchs import contiguous, write
from ringzero.data_parallel.executor import queue_of
from ringzero.data_parallel.in_order import as_on_rank_0
from ringzero.data_parallel.leftovers import holders, refuse_steps, replicas
from ringzero.data_parallel.own_group import OwnGroup, own_group
from ringzero.data_parallel.structure import Structure
from ringzero.data_parallel.vector import Vector
from ringzero.record.eager import not_compiled

running_backward, NOT_BACKWARD = torch._C._current_graph_task_id, -1  # autograd's number of a backward pass
AVERAGED = (
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.complex64, torch.complex128,
)  # fmt: skip
_numbers = itertools.count()  # of replicas
_hooked = WeakIdKeyDictionary()  # {parameter with a hook: (a weak reference to its replica, the hook's handle)}


class Replica(Module):
    """``module`` with a hook on each trained parameter. Subclasses say what to do when gradients are there.

    All ranks get rank 0's parameters and buffers, and before each forward pass that trains rank 0's buffers, unless
    ``broadcast_buffers`` is false. ``unused`` names parameters that never get a gradient, and may differ between ranks.
    The ``state_dict`` is the module's own. A module that is wrapped again leaves its earlier replica, which cannot be
    used any more.

    ``module``   what was wrapped
    ``trained``  ``{name: parameter}`` of those that require a gradient and are not ``unused``; a tied one comes once
    ``group``    a process group of its own, of the ranks that have the copies

    Raises ValueError when ``unused`` names what is not there, a parameter is in another replica with another module, or
    the ranks' modules differ: the first difference is named; or for a trained parameter of a type of which no mean is
    taken, such as float8. Raises RuntimeError, as torch's, when there is nothing to
    train; TypeError for a module with a replica inside.
    """

    _structure: Structure | None = None  # a copy has none
    _weights_agree: Callable[[], object] | None = None  # waits for what all ranks say of their weights
    optimizer: Any = None  # that steps with the model
    hooks_in_no_sync = False  # whether gradients that no_sync keeps on this rank are announced too

    def __init__(self, module: Module, *, unused: Collection[str] = (), broadcast_buffers: bool = True,
                 group: dist.ProcessGroup | None = None):  # fmt: skip
        super().__init__()
        _leave_earlier_replica(module)
        self.module, self.broadcast_buffers = module, broadcast_buffers
        ranks_of = cast(dist.ProcessGroup, group or dist.group.WORLD)
        named = dict(module.named_parameters())
        if unknown := set(unused) - {*named, *dict(module.named_buffers())}:
            raise ValueError(f"unused has {sorted(unknown)}; the module's parameters are {', '.join(named)}")
        trained = {name: p for name, p in named.items() if p.requires_grad and name not in unused}
        if not trained:
            raise RuntimeError(f"{type(module).__name__} has no parameter that requires a gradient: nothing to train")
        self._each_rank_s_own = check_alike(module, unused, ranks_of)
        if odd := [f"{name} is {p.dtype}" for name, p in trained.items() if p.dtype not in AVERAGED]:
            raise ValueError(f"{', '.join(odd)}, and a mean over ranks is taken of {', '.join(map(str, AVERAGED))}")
        if ranks_of.size() > 1:
            _refuse_renormalized(module)
        self._own_groups: list[OwnGroup] = []
        self.group = self._new_group(ranks_of)
        broadcast_state(self.shared([*module.named_parameters(), *module.named_buffers()]), 0, self.group)
        refuse_steps(replica_of)
        replicas[next(_numbers)] = self
        event_threads.calm()  # so that all-reduces of the backend's own, too, hinder the backward pass less
        self._syncing = True
        self.passes = 0  # backward passes of all ranks together, those that failed too
        self.joined = -1  # how many passes there were when the last join was over
        self._weights_compared = False
        self._task: int | None = None  # the backward pass that is running, by autograd's number
        self._waiting: list[Parameter] = []  # at most one, whose gradient other hooks of the program may still change
        self._later: tuple[torch.Tensor, Any, torch.Tensor] | None = None  # the mark of the last pass, on a GPU
        self._failed = self._owes = False  # whether this backward pass, or an earlier one, ended with an error
        self._in_backward = False  # whether it has brought a gradient; still true later if it ended with an error
        self._has_buffers = False  # those of rank 0, for a forward pass that ended with an error and may come again
        self._stays = False  # whether its gradients stay on this rank for now, as in no_sync
        self.trained: dict[str, Parameter] = {}
        self._names: dict[Parameter, str] = {}
        self._hooks: list[Any] = []
        self._frozen = [p for name, p in named.items() if name not in unused]  # but for what is trained
        self._unused = tuple(unused)
        self._known, self._structure = set(named.values()), Structure(module)
        self._train(trained)

    def _train(self, named: Mapping[str, Parameter]) -> None:
        """Hook ``named`` parameters from now on."""
        hook = _weakly(self)
        for name, parameter in named.items():
            self.trained[name], self._names[parameter] = parameter, name
            self._hooks.append(parameter.register_post_accumulate_grad_hook(hook))
            _hooked[parameter] = ref(self), self._hooks[-1]
            self._known.add(parameter)
        self._frozen = [parameter for parameter in self._frozen if parameter not in self._names]

    @not_compiled
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        self._check_usable()
        if any(parameter.requires_grad for parameter in self._frozen):
            self._train_unfrozen()
        trains = self.broadcast_buffers and self._syncing and torch.is_grad_enabled() and self.module.training
        if trains and not self._has_buffers:
            broadcast_changes(self.shared(self.module.named_buffers()), self.group)
            self._has_buffers = True
        output = self.module(*args, **kwargs)
        if trains:
            self._has_buffers = False
        if torch.is_grad_enabled():
            self.check_wrapped()  # after the pass, which has what is looked at in the processor's cache
        for leaf in tree_leaves(output):
            if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
                _ = leaf.grad_fn  # found anew for a view that was written to; without that register_hook would crash
                leaf.register_hook(self._backward_reaches_output)
        return output

    def shared(self, named: Iterable[tuple[str, torch.Tensor]]) -> list[torch.Tensor]:
        """Those of the ``named`` tensors of the module that are the same on all ranks, or ought to be."""
        return [tensor for name, tensor in named if name not in self._each_rank_s_own]

    def _train_unfrozen(self) -> None:
        """Hook what was frozen when the module was wrapped, and is not any more, on every rank alike."""
        names = {parameter: name for name, parameter in self.module.named_parameters()}
        unfrozen = {names[p]: p for p in self._frozen if p.requires_grad and p in names}
        if late := [name for name, parameter in unfrozen.items() if parameter not in self._known]:
            raise RuntimeError(self._came_late(late))
        self._frozen = [p for p in self._frozen if not p.requires_grad or p in names]  # others have left the module
        self._train(unfrozen)

    def check_wrapped(self, at_all_costs: bool = False) -> None:
        """Raise RuntimeError, with names, if the module has trained parameters that were not wrapped.

        It looks at all of them only if the module holds others than the last time, or ``at_all_costs``.
        """
        if self._structure is None or not (at_all_costs or self._structure.differs):
            return
        # What is computed from parameters, as fast weights in functional_call, hands its gradient on to them.
        now = {name: p for name, p in self.module.named_parameters() if p.is_leaf}
        came = [name for name, p in now.items() if p.requires_grad and p not in self._known]
        if late := [name for name in came if name not in self._unused]:
            raise RuntimeError(self._came_late(late))
        self._frozen = [p for name, p in now.items() if p not in self._names and name not in self._unused]
        self._structure = Structure(self.module)

    def _came_late(self, names: list[str]) -> str:
        kind = type(self).__name__
        return (
            f"{', '.join(names)} came into the {type(self.module).__name__} after it was wrapped, and no rank would "
            f"average the gradient: wrap the module again on every rank with {kind}(module), and give the optimizer "
            "the parameters that the module has now; or freeze what is not trained by requires_grad_(False)"
        )

    def _check_usable(self) -> None:
        """Raise RuntimeError if the module has another replica by now, or the last backward pass had an error."""
        if not self._hooks:
            raise RuntimeError(
                f"the {type(self.module).__name__} of this {type(self).__name__} was wrapped again; use the new wrapper"
            )
        if running_backward() == NOT_BACKWARD:
            self._check_mark_of_last_pass()
            if self._in_backward and self._stays:  # nothing is on its way: what came stays, as in one process
                self.abandon()
                self._end_of_backward()
            elif self._in_backward:
                self._give_up()
                raise RuntimeError(
                    f"the last backward pass of this {type(self).__name__} ended with an error; call its zero_grad() "
                    "on every rank, which ends what is on its way, and go on"
                )
            self._task = None

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients. After a backward pass that ended with an error, all ranks must call it."""
        if self._in_backward and running_backward() == NOT_BACKWARD:
            try:
                self._give_up()
            finally:
                self._end_of_backward()
        holders.discard(self)
        super().zero_grad(set_to_none)

    def _give_up(self) -> None:
        """The last backward pass ended with an error: end what is on its way, once.

        Raises RuntimeError if it did not on all ranks.
        """
        if not self._failed:
            self._failed = True
            self.abandon()
            self.passes += 1

    @property
    def in_join(self) -> bool:
        """Whether this rank is inside ``join`` and has data."""
        return False

    def summary(self) -> str:
        """What the model holds, a line each: what is trained, frozen and whole, in which types, buckets and groups."""
        holds = self._holds()
        width = max(map(len, holds))
        return "\n".join(f"{what:{width}}  {text}" for what, text in holds.items())

    def _holds(self) -> dict[str, str]:
        """``{what: in words}``, the lines of ``summary``."""
        buffers = self.shared(self.module.named_buffers())
        each = self._each_rank_s_own
        return {
            type(self).__name__: f"of a {type(self.module).__name__}, on rank {self.group.rank()} of "
            f"{self.group.size()}",
            "trained": _in_words(self.trained.values()),
            "frozen": _in_words(self._frozen),
            "unused": ", ".join(self._unused) or "none",
            "buffers": _in_words(buffers) + (f"; each rank has its own {', '.join(sorted(each))}" if each else ""),
            "whole": "parameters, gradients and optimizer states, on every rank",
            "buckets": _buckets_in_words(self._buckets()),
            "groups": f"{len(self._own_groups)} of its own: "
            + ", ".join(f"{own.group.size()} ranks on {own.group.name()}" for own in self._own_groups),
        }

    def _buckets(self) -> list[list[Parameter]]:
        """Parameters whose gradients travel in one message, in the order in which they leave, if that is known."""
        return [[parameter] for parameter in self.trained.values()]

    def leave(self) -> None:
        """Leave the module as it was before: hooks are removed."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        for parameter in self.trained.values():
            _hooked.pop(parameter, None)

    def __deepcopy__(self, memo: dict) -> "Replica":
        return _copy_of(type(self), copy.deepcopy(self.module, memo))

    def __reduce__(self) -> tuple:
        return _copy_of, (type(self), self.module)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """That of the module, as if it were not wrapped."""
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Of the module, as if it were not wrapped."""
        return self.module.load_state_dict(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Backward passes inside only add gradients up on this rank; the next one outside synchronises the sum."""
        before, self._syncing = self._syncing, False
        try:
            yield
        finally:
            self._syncing = before

    # A backward pass may run others inside, as with ``checkpoint(use_reentrant=True)``. All count as one: it begins
    # when the outermost reaches an output of the module, or else a parameter, and ends with it.

    def _backward_reaches_output(self, _gradient: torch.Tensor) -> None:
        if not self._in_backward and self._task != running_backward():
            self._task = running_backward()
            torch.autograd.Variable._execution_engine.queue_callback(self._end_of_task)

    def _hook(self, parameter: Parameter) -> None:  # autograd calls it when parameter.grad is complete
        if self._syncing or self.hooks_in_no_sync:
            if self._task is None:  # it came to none of our outputs: the module was called without its wrapper
                self._backward_reaches_output(parameter)
                self.check_wrapped()
            if not self._in_backward:
                agree, self._weights_agree = self._weights_agree, None
                if agree is not None:
                    agree()
                self._check_mark_of_last_pass()
                self._set_in_backward(True)
                self._stays = not self._syncing
                holders.add(self)
                self.backward_begins()
            # Other hooks of the program come after this one, and may still change the gradient.
            if self._waiting:
                self._ready(self._waiting.pop())
            if len(parameter._post_accumulate_grad_hooks) > 1:
                self._waiting.append(parameter)
            else:
                self._ready(parameter)
        elif self not in holders:
            holders.add(self)

    def _ready(self, parameter: Parameter) -> None:
        self.gradient_ready(parameter)

    def _end_of_task(self) -> None:
        self._task = None
        if self._in_backward:
            if self._waiting:
                self._ready(self._waiting.pop())
            holders.discard(self)
            self._with_a_better_reason(self.all_ready)
            # After the end of every model in this pass: ranks whose models end in another order would wait for ever.
            torch.autograd.Variable._execution_engine.queue_callback(self._end_of_pass)
        elif self._syncing:  # no gradient at all: as with autograd.grad, or because all parameters were replaced
            self.check_wrapped(at_all_costs=True)

    def _end_of_pass(self) -> None:
        self._with_a_better_reason(self.backward_over)
        self._end_of_backward()

    def _with_a_better_reason(self, job: Callable[[], None]) -> None:
        try:
            job()
        except RuntimeError:
            if self._in_backward:
                self._check_gone()
            raise

    def _check_gone(self) -> None:
        """Raise RuntimeError, with names, if the module is not what was wrapped: a better reason than no gradients."""
        self.check_wrapped(at_all_costs=True)
        here = set(self.module.parameters())
        if gone := [name for name, p in self.trained.items() if p not in here and p.grad is None]:
            raise RuntimeError(
                f"{', '.join(gone)} left the {type(self.module).__name__} after it was wrapped, and got no gradient; "
                f"wrap the module again on every rank with {type(self).__name__}(module)"
            )
        if froze := [name for name, p in self.trained.items() if not p.requires_grad and p.grad is None]:
            raise RuntimeError(
                f"{', '.join(froze)} frozen after the {type(self.module).__name__} was wrapped, and got no gradient; "
                f"wrap the module again on every rank with {type(self).__name__}(module)"
            )

    @property
    def in_backward(self) -> bool:
        """Whether a backward pass is running, or has ended with an error."""
        return self._in_backward

    def _end_of_backward(self) -> None:
        self._task = None
        self._waiting.clear()
        self._failed = False
        self._set_in_backward(False)

    def _set_in_backward(self, value: bool) -> None:
        self._in_backward = value
        for own in self._own_groups:
            own.in_use = value

    def backward_begins(self) -> None:
        """Called before the first ``gradient_ready`` of a backward pass."""

    def gradient_ready(self, parameter: Parameter) -> None:
        """Called during the backward pass, as soon as ``parameter.grad`` is complete."""

    def all_ready(self) -> None:
        """Called at the end of a backward pass, after the last ``gradient_ready``: what has not left now leaves."""

    def backward_over(self) -> None:
        """Called at the end of a backward pass, after ``all_ready`` of all models, before ``loss.backward()`` returns.

        Raises RuntimeError, with names, if a parameter has no gradient: other ranks may have one of it.
        """
        self.passes += 1
        if missing := self._missing():
            raise RuntimeError(
                f"no gradient in this backward pass for {', '.join(missing)}; if that is meant on every rank, use "
                f"unused={missing}; if it differs, DistributedDataParallel with find_unused=True"
            )

    def compare_weights(self) -> None:
        """At the end of the first pass: begin to compare the ranks' weights. If they differ, the next pass says so."""
        if not self._weights_compared:
            self._weights_compared, self._weights_agree = True, as_on_rank_0([], self.group, self.trained)

    def _missing(self) -> list[str]:
        """Names of the trained parameters without a gradient at the end of a pass."""
        return [name for name, p in self.trained.items() if p.grad is None]

    def abandon(self) -> None:
        """Called after a backward pass that ended with an error: end what is on its way, on every rank alike."""

    # What if one rank catches an error of its backward pass and goes on? The others have no message that would tell
    # them. So the rank marks the gradients that it still owes: their first number is NaN, and so is that of the sum,
    # on every rank. Whoever finds a NaN there asks all ranks. An honest NaN, as of float16, costs one small message.

    def mark(self, gradients: torch.Tensor | None, over: int = 1) -> None:
        """Call it with the last gradients of a pass, before they leave. They are still to be divided by ``over``."""
        assert gradients is not None
        if (self._failed or self._owes) and gradients.numel() and not gradients.is_sparse:
            self._unmarked = _first(gradients) / over
            _first(gradients).fill_(torch.nan)

    def check_mark(self, gradients: torch.Tensor | None, rounded: bool = False, at_once: bool = False) -> None:
        """Call it with the same gradients when they are back. ``rounded`` says that they are not an exact sum.

        On a GPU it looks when the next pass begins, unless ``at_once``.

        Raises RuntimeError, on every rank, if some ranks ended a pass with an error and others did not.
        """
        assert gradients is not None
        if not gradients.numel() or gradients.is_sparse:
            return
        found = gradients.isnan().any() if rounded else _first(gradients).isnan()
        if found.is_cuda and not (at_once or self._failed or self._owes):  # a wait for the GPU would cost too much here
            here = torch.cuda.current_stream(found.device)
            self._later = found.to("cpu", non_blocking=True), here.record_event(), gradients
        elif found:
            self._ask_who_failed(gradients)

    def _check_mark_of_last_pass(self) -> None:
        if self._later is not None:
            (found, copied, gradients), self._later = self._later, None
            copied.synchronize()
            if found:
                self._ask_who_failed(gradients)

    def _ask_who_failed(self, gradients: torch.Tensor) -> None:
        failed = self._who_failed(gradients.device)
        owes, self._owes = self._owes, False
        if not all(failed) and any(failed):
            self._forget_gradients()
            self._end_of_backward()
            names = ", ".join(str(rank) for rank, flag in enumerate(failed) if flag)
            raise RuntimeError(
                f"a pass of this {type(self).__name__} ended with an error on rank {names} and not on the "
                "others, so the ranks' steps would differ; catch such an error on every rank, or on none"
            )
        if owes:  # every rank does, so nothing differs
            first = self._unmarked
            dist.all_reduce(first, group=self.group)
            _first(gradients).copy_(first)

    def _who_failed(self, device: torch.device) -> list[bool]:
        flags = [rank == self.group.rank() and (self._failed or self._owes) for rank in range(self.group.size())]
        return self._on_any_rank(flags, device)

    def _forget_gradients(self) -> None:
        for parameter in self.trained.values():
            parameter.grad = None

    def _on_any_rank(self, flags: Iterable[bool], device: torch.device) -> list[bool]:
        """Which of the ``flags`` are true on at least one rank. All ranks must ask at the same place of a pass."""
        agreed = torch.tensor(list(flags), dtype=torch.uint8, device=device)
        # Behind the gradients, in their queue: two threads may not use one process group.
        find_out = partial(dist.all_reduce, agreed, op=dist.ReduceOp.MAX, group=self.group)
        queue_of(self.group, device).submit(find_out).result()
        return [bool(flag) for flag in agreed.tolist()]

    def _new_group(self, ranks_of: dist.ProcessGroup) -> dist.ProcessGroup:
        """A process group of the same ranks for this replica alone."""
        self._own_groups.append(own_group(ranks_of, self))
        return self._own_groups[-1].group

    def _vector(self, parameters: Iterable[Parameter]) -> Vector:
        return Vector({self._names[p]: p for p in parameters}, self.group.size())


def _refuse_renormalized(module: Module) -> None:
    """Raise ValueError for embeddings that write to their weight in the forward pass, each rank to other rows."""
    for name, each in module.named_modules():
        if isinstance(each, torch.nn.Embedding | torch.nn.EmbeddingBag) and each.max_norm is not None:
            raise ValueError(
                f"{name or 'the module'} is an {type(each).__name__} with max_norm={each.max_norm}: its forward pass "
                "shortens the rows that this rank's samples use, so the ranks' weights would differ. Leave max_norm "
                "out, and shorten all rows after each step, on every rank: with torch.no_grad(): "
                f"module.get_parameter({'.'.join(filter(None, (name, 'weight')))!r}).renorm_(2, 0, {each.max_norm})"
            )


def _in_words(tensors: Iterable[torch.Tensor]) -> str:
    """How many tensors and numbers of each type."""
    kinds: dict[torch.dtype, list[int]] = defaultdict(list)
    for tensor in tensors:
        kinds[tensor.dtype].append(tensor.numel())
    said = [
        f"{len(sizes)} tensor{'s' * (len(sizes) > 1)} with {sum(sizes):,} numbers of {str(kind).removeprefix('torch.')}"
        for kind, sizes in kinds.items()
    ]
    return "; ".join(said) or "none"


def _buckets_in_words(buckets: list[list[Parameter]]) -> str:
    sizes = [sum(parameter.nbytes for parameter in bucket) for bucket in buckets]
    each = ", ".join(f"{size:,}" for size in sizes[:8]) + ", ..." * (len(sizes) > 8)
    return f"{len(sizes)} of {each} bytes"


def _first(gradients: torch.Tensor) -> torch.Tensor:
    """The first number, as a view."""
    return gradients[(0,) * gradients.dim()]


def replica_of(parameter: torch.Tensor) -> Replica | None:
    """The replica that trains ``parameter``, if there is one."""
    weak, _ = _hooked.get(parameter, (None, None))
    return weak and weak()


def broadcast_state(tensors: Iterable[torch.Tensor], root: int, group: dist.ProcessGroup) -> None:
    """Give every rank the ``tensors``, of any layout, of rank ``root`` of the group."""
    for tensor in tensors:
        with contiguous(tensor) as numbers:
            dist.broadcast(numbers, group_src=root, group=group)


def broadcast_changes(buffers: list[torch.Tensor], group: dist.ProcessGroup) -> None:
    """Give every rank rank 0's ``buffers``: those of one type in one message. Only those that differ are written to."""
    kinds: dict[tuple, list[torch.Tensor]] = defaultdict(list)
    for buffer in buffers:
        kinds[buffer.dtype, buffer.device].append(buffer.detach())
    for alike in kinds.values():
        flat = torch.cat([buffer.reshape(-1) for buffer in alike])
        dist.broadcast(flat, group_src=0, group=group)
        if group.rank() != 0:
            parts = [p.view(b.shape) for b, p in zip(alike, flat.split([b.numel() for b in alike]), strict=True)]
            differ = torch.stack([(b != p).any() for b, p in zip(alike, parts, strict=True)]).tolist()
            for buffer, part, differs in zip(alike, parts, differ, strict=True):
                if differs:  # others autograd may have saved, and would see the write
                    write(buffer, part)


def _weakly(replica: Replica) -> Callable[[Parameter], None]:
    """Its hook on parameters. What torch keeps Python cannot see, so the hook may not keep the replica alive."""
    weak, kind = ref(replica), type(replica).__name__

    def hook(parameter: Parameter) -> None:
        replica = weak()
        if replica is None:
            raise RuntimeError(
                f"the {kind} that averages this gradient is gone; keep it while its module is trained, or call its "
                "leave() before"
            )
        replica._hook(parameter)

    return hook


def _copy_of(kind: type[Replica], module: Module) -> Replica:
    """A replica that other ranks know nothing of: to average weights, to evaluate, to load. It cannot be trained."""
    copied = kind.__new__(kind)
    Module.__init__(copied)
    copied.module, copied.trained, copied.broadcast_buffers, copied._frozen = module, {}, False, []
    copied._task, copied._in_backward, copied._syncing, copied._later = None, False, True, None
    copied._hooks = [p.register_post_accumulate_grad_hook(_refuse) for p in module.parameters() if p.requires_grad]
    return copied


def _refuse(_parameter: Parameter) -> None:
    raise RuntimeError("this is a copy, whose gradients nobody averages over the ranks; to train it, wrap its `module`")


def _leave_earlier_replica(module: Module) -> None:
    """Have the replica that ``module`` is in already, if any, leave it."""
    if inside := next((inner for inner in module.modules() if isinstance(inner, Replica)), None):
        raise TypeError(
            f"there is a {type(inside).__name__} inside of what was given, a {type(module).__name__}; give the module "
            "in it, its attribute `module`"
        )
    for name, parameter in module.named_parameters():
        earlier, (_, handle) = replica_of(parameter), _hooked.get(parameter, (None, None))
        if earlier is None:
            if handle is not None:
                handle.remove()
            continue
        if earlier.module is not module:
            raise ValueError(
                f"{name} is in a {type(earlier).__name__} of a {type(earlier.module).__name__} already, and would be "
                f"averaged twice; wrap one module that holds both, or call leave() of the first"
            )
        earlier.leave()


def check_alike(module: Module, unused: Collection[str], group: dist.ProcessGroup) -> set[str]:
    """Raise ValueError, on every rank, naming the first parameter or buffer in which a rank differs from rank 0.

    Those that are ``unused`` may differ. Returns the names of those that do.
    """
    tensors = [*module.named_parameters(), *module.named_buffers()]
    mine = {name: f"{name}: {tuple(t.shape)} {t.dtype}{' trained' * t.requires_grad}" for name, t in tensors}
    everyone: list[dict[str, str]] = [{}] * group.size()
    dist.all_gather_object(everyone, mine, group=group)
    for rank, theirs in enumerate(everyone):
        used = ([text for name, text in each.items() if name not in unused] for each in (everyone[0], theirs))
        for first, other in zip_longest(*used, fillvalue="nothing more"):
            if first != other:
                raise ValueError(f"the ranks' modules differ: rank 0 has {first}, rank {rank} has {other}")
    return {name for name in unused if len({theirs.get(name) for theirs in everyone}) > 1}
