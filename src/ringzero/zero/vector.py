"""A sharded vector: parameters that travel together, their gradients, and the shards of both that this rank owns."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch.nn import Parameter

from ringzero.data_parallel.executor import Done, queue_of
from ringzero.data_parallel.in_order import Wait
from ringzero.data_parallel.vector import Vector, dense
from ringzero.record.memory import label
from ringzero.zero.gone import InShards, give_back, take_away
from ringzero.zero.sharding import Layout
from ringzero.zero.transport import Transport
from ringzero.zero.watched import Master, end_watch, may_be_written, watch


class ShardedVector(Vector):
    """``parameters``, all of one type, moved into one vector, of which this rank owns a shard. All tensors are 1-D:

    ``whole``      the parameters; each is a view of it
    ``shard``      this rank's part of them, in the memory of ``whole``, or with ``own_shard`` in its own
    ``master``     what the optimizer steps, as ``home`` has it: the shard, or a copy of it from before it got the type
                   ``dtype``
    ``gradient``   this rank's gradients over the number of ``ranks``, as they come in; or None
    ``reduced``    this rank's shard of their sum over the ranks, in the memory of ``gradient`` or in its own; or None
    ``of_node``    the same of passes in ``no_sync`` that were reduced inside the node alone, summed; or None
    ``secondary``  this rank's part of the parameters when only its node shares them, for ``in_node``; or None

    ``reduces`` and ``gathers`` are the transports by which it is reduced and gathered: in stage 3 two, so that gathers
    need not queue behind reductions. It is cut among the ranks of a transport's group, which may be some of the
    ``ranks``; with an ``owner`` it is that rank's. One that is not ``trained`` gets no gradients, and nobody steps its
    master: that is this rank's shard as it was given.
    """

    in_rows = True

    def __init__(self, parameters: Mapping[str, Parameter], reduces: Transport, gathers: Transport, home: Any, *,
                 dtype: torch.dtype | None, own_shard: bool, ranks: int, owner: int | None = None,
                 trained: bool = True):  # fmt: skip
        group, self.trained = reduces.group, trained
        self.reduced: torch.Tensor | None = None
        self.of_node: torch.Tensor | None = None
        self._earlier: tuple[torch.Tensor | None, ...] = ()  # what a reduction that is on its way adds to
        self.added: set[Parameter] = set()  # whose gradients are in ``gradient`` and not in ``reduced`` yet
        super().__init__(parameters, ranks)
        self.reduces, self.gathers, self.home = reduces, gathers, home
        shapes = tuple((name, tuple(p.shape)) for name, p in self.parameters.items())
        self.layout = Layout(shapes, group.size(), owner)
        self.owned = self.layout.shard(group.rank())
        original = torch.cat([p.detach().reshape(-1) for p in self.parameters.values()])
        self.whole = original.to(dtype or original.dtype)
        self.shard = home.shard(self.whole[self.owned], own_shard)
        self.own_shard = own_shard
        self.master = home.master(original[self.owned], self.shard)
        self.master.__class__ = Master
        self.mark_of_master: InShards | None = None
        self.master_has_own_memory = own_shard or not _share_memory(self.master, self.whole)
        self.secondary: torch.Tensor | None = None
        self.used = False  # whether a gradient came since ``forget_gradient``, on this rank or on another
        self._nothing = self.whole.new_empty(0)
        self._arriving: Done | None = None  # a gather that is on its way
        views = self.layout.views(self.whole)
        self._places = {name: (view.storage_offset(), view.stride()) for name, view in views.items()}
        self._note_versions()
        self._show_whole()
        if self.master_has_own_memory and not own_shard:
            for parameter in self._shapes:
                watch(parameter)
        self._in_shards = {p: InShards.of(name, self.whole, p.shape) for name, p in self.parameters.items()}

    @property
    def group(self) -> dist.ProcessGroup:
        return self.reduces.group

    @property
    def holds_sums(self) -> bool:
        """Whether there are gradients of earlier passes."""
        return self.reduced is not None or self.of_node is not None

    def expect_gradients(self) -> None:
        """A backward pass begins: every gradient is still missing, and autograd may put it where it likes."""
        super().expect_gradients()
        if not self.trained:
            self.missing = set()
        with torch._C.DisableTorchFunctionSubclass():  # ``Gone`` would look at each access
            for parameter in self._shapes:
                if isinstance(parameter.grad, InShards):
                    parameter.grad = parameter.grad.begins()

    def put(self, parameter: Parameter) -> None:
        """Add ``parameter.grad`` to ``gradient`` and forget it; none counts as zeros."""
        if self.holds_sums and not self.added:
            self._free_gradient()  # a second backward pass before a step: ``reduced`` adds up
        if self.gradient is None:
            label(self.hold_gradient(), "gradients")
        if parameter not in self.added and self.views[parameter].dtype == self.whole.dtype:
            self.take_in(parameter)
        else:
            if parameter not in self.added:
                self.views[parameter].zero_()  # in memory that is in the master's type since another one's was added
            if parameter.grad is not None:
                if self.gradient is not None and self.gradient.dtype != self.master.dtype:
                    self._hold_as(self.master.dtype)  # in which many small numbers add up
                self.views[parameter].add_(dense(parameter.grad), alpha=1 / self.ranks)
            self.missing.discard(parameter)
        self._mark(parameter)
        self.added.add(parameter)

    def _hold_as(self, dtype: torch.dtype) -> None:
        """Have ``gradient`` be of another type, in new memory."""
        before = self.gradient
        assert before is not None
        converted = self.hold_gradient(dtype)
        converted.copy_(before)
        label(converted, "gradients")

    def mark_master(self) -> None:
        """Have whoever looks at ``master.grad`` be told, too."""
        mark = self.mark_of_master
        if mark is None or mark.shape != self.master.shape:  # one in a file is empty
            mark = InShards.of(f"a shard of {', '.join(self.parameters)}", self.master, self.master.shape)
        self.master.grad = self.mark_of_master = mark

    def _mark(self, parameter: Parameter) -> None:
        """Have whoever looks at ``parameter.grad`` be told where the gradient is."""
        if not self._is_empty:
            parameter.grad = self._in_shards[parameter]
            return
        with torch._C.DisableTorchFunctionSubclass():  # autograd wants it to have the size of the parameter
            parameter.grad = InShards.of(self._in_shards[parameter].whose, self._nothing, (0,))

    def reduce(self, inside_alone: bool, arrived: Callable[[torch.Tensor], object] | None, frees: bool) -> Wait:
        """Begin to add this rank's shard of the sum of all ranks' ``gradient`` to ``reduced``. Returns what waits.

        With ``inside_alone`` add that of the node's sum to ``of_node``; the next pass without it takes all of these
        across. ``arrived`` is shown the shard first, or then its first number, summed over all ranks. ``gradient`` is
        worthless then; what ``frees`` gives it back.

        Another stream may do this. What it reads is kept until the caller has waited: the caller's stream would take
        memory that is free at once.
        """
        if self.gradient is not None and self.gradient.dtype != self.whole.dtype:
            self._hold_as(self.whole.dtype)  # in which it travels
        job, after = partial(self._reduce, inside_alone, arrived), self._free_gradient if frees else self._let_go
        return queue_of(self.group, self.whole.device).submit(job, after).result

    def _reduce(self, inside_alone: bool, arrived: Callable[[torch.Tensor], object] | None) -> None:
        assert self.gradient is not None  # it is full
        shard, across, self.added = self.reduces.reduce(self.gradient), self.reduces.across, set()
        if across is not None and inside_alone:
            if arrived is not None:
                first = shard[:1].clone()
                across(first)
                arrived(first)
            self.of_node = shard.to(self.master.dtype, copy=True) if self.of_node is None else self.of_node.add_(shard)
            return
        self._earlier, self.of_node = (self.reduced, self.of_node), None
        if self._earlier[1] is not None:
            shard.copy_(self._earlier[1].add_(shard))
        if across is not None:
            across(shard)
        if arrived is not None:
            arrived(shard)
        self.reduced = self.home.accumulate(self, shard)

    def _let_go(self) -> None:
        """What was reduced is there."""
        self._earlier = ()

    def _free_gradient(self) -> None:
        """Keep this rank's shard of the sum alone."""
        self._let_go()
        if self.gradient is not None and self.reduced is not None:
            if _share_memory(self.reduced, self.gradient):
                self.reduced = self.reduced.clone()
            label(self.reduced, "gradients")
        if self.of_node is not None:
            label(self.of_node, "gradients")
        self.gradient, self.views = None, {}

    def change_gradient(self, change: Callable[[torch.Tensor], object]) -> None:
        """Have ``change`` write to ``reduced``, if there is one, in the precision of the master."""
        if self.reduced is not None:
            self.reduced = self.reduced.to(self.master.dtype)
            change(self.reduced)

    def forget_gradient(self) -> None:
        """Forget what was added up; the memory stays."""
        self.reduced, self.of_node, self.added, self.used = None, None, set(), False
        with torch._C.DisableTorchFunctionSubclass():
            for parameter in self._shapes:
                if isinstance(parameter.grad, InShards):
                    parameter.grad = parameter.grad.begins()

    def sums(self) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """Copies of ``reduced`` and ``of_node``, for ``take_back``."""
        reduced, of_node = (None if each is None else each.clone() for each in (self.reduced, self.of_node))
        return reduced, of_node

    def take_back(self, reduced: torch.Tensor | None, of_node: torch.Tensor | None) -> None:
        """Have the sums be as they were before a pass."""
        if reduced is None and of_node is None:
            self.forget_gradient()
        self.reduced, self.of_node = reduced, of_node

    def gather(self) -> None:
        """Fill ``whole`` with all ranks' shards."""
        in_node = self.gathers.in_node
        label(self.whole, "parameters")
        if self.secondary is not None and in_node is not None:
            self.whole[self._of_node(in_node)] = self.secondary
            in_node.gather(self.whole)
            return
        if self.own_shard:
            label(self.shard, "parameters")
            self.home.load_shard(self, self.whole[self.owned])
        self.gathers.gather(self.whole)
        if in_node is not None:
            self.secondary = self.whole[self._of_node(in_node)].clone()
            label(self.secondary, "parameters")

    def _of_node(self, in_node: Transport) -> slice:
        """The part of ``whole`` that this rank has where its node alone shares it."""
        return Layout(self.layout.parameters, in_node.group.size()).shard(in_node.group.rank())

    def _show_whole(self) -> None:
        """Let each parameter be a view of ``whole``."""
        self._is_empty = False
        for name, view in self.layout.views(self.whole).items():
            give_back(self.parameters[name])
            self.parameters[name].data = view

    def is_in_place(self, name: str, parameter: Parameter) -> bool:
        """Whether ``parameter``, which has the ``name``, is where this vector has put it."""
        here = self._nothing if self._is_empty else self.whole
        if parameter.untyped_storage().data_ptr() != here.untyped_storage().data_ptr():
            return False
        return self._is_empty or (parameter.storage_offset(), parameter.stride()) == self._places[name]

    def unshard(self) -> None:
        """Begin to gather ``whole``, in memory that is taken for it."""
        self.whole.untyped_storage().resize_(self.whole.nbytes)
        self._arriving = queue_of(self.gathers.group, self.whole.device).submit(self.gather)

    def wait(self) -> None:
        """Wait for what ``unshard`` began: now parameters can be read."""
        if self._arriving is not None:
            self._arriving.result()
            self._arriving = None
            self._show_whole()

    def reshard(self) -> None:
        """Give the memory of ``whole`` back: the parameters are empty."""
        self._is_empty = True
        for name, parameter in self.parameters.items():
            parameter.data = self._nothing
            take_away(parameter, name, self._shapes[parameter])
        self.whole.untyped_storage().resize_(0)  # what autograd saved refers to it, and finds it filled again later

    def take_over_whole(self, before: torch.Tensor) -> None:
        """Have the master say what this rank's part of ``whole`` says, where that was changed since ``before``.

        Elsewhere the master stays: what is computed with may be rounded, or a step older.
        """
        here = self.whole[self.owned].to(self.master.device)
        unchanged = here == before.to(self.master.device)
        self.master.copy_(torch.where(unchanged, self.master, here.to(self.master.dtype)))
        self._note_versions()

    def take(self, shard: torch.Tensor) -> None:
        """From now on ``shard`` is this rank's part, and what is gathered."""
        self.master.copy_(shard)
        self.bring_up_to_date()

    def bring_up_to_date(self) -> None:
        """The master was written to: so is what is gathered."""
        self.home.write_back(self)
        self.secondary = None

    def heed_data(self) -> None:
        """Take over what the program wrote to parameters by ``data``."""
        if may_be_written(self._shapes):
            self.home.heed(self)

    def leave(self) -> None:
        """Have the parameters be of the class that they were of."""
        for parameter in self._shapes:
            give_back(parameter)
            end_watch(parameter)

    def _note_versions(self) -> None:
        self.versions = {name: parameter._version for name, parameter in self.parameters.items()}
        self.version_of_master = self.master._version


def _share_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.untyped_storage()._cdata == other.untyped_storage()._cdata
