"""The backward passes of a ZeRO model: vectors of gradients leave in order, and are reduced to shards."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch.nn import Parameter

from ringzero.data_parallel.executor import queue_of
from ringzero.data_parallel.in_order import InOrder, Wait, as_on_rank_0
from ringzero.data_parallel.replica import NOT_BACKWARD, running_backward
from ringzero.zero.failed import Word
from ringzero.zero.vector import ShardedVector

# Where reduced gradients are freed: how many vectors may be on their way while the next one fills, as in FSDP2. Without
# a limit a fast backward pass would run ahead of a slow network, and at its end all gradients would be whole.
IN_FLIGHT = 1


class Backward:
    """What ``model``, a ``ZeroModel``, does in a backward pass: see the methods of ``Replica`` of the same names."""

    def __init__(self, model: Any, vectors: list[ShardedVector]):
        self._model, self._word = model, Word(model._own_groups[0])
        self._frees = "gradients" not in model.keeps_whole
        self._inside_nodes = False  # whether this pass is reduced inside nodes alone, as in ``no_sync``
        in_flight = IN_FLIGHT if self._frees else None
        self.in_order = InOrder(
            model.trained, vectors, self._start_reducing, self._as_rank_0, model.find_unused, in_flight
        )

    @property
    def reduce_after_all_gathers(self) -> bool:
        """Whether no gradient is reduced in the backward pass before its last gather has started.

        Ranks that use different units come to a reduction after different gathers. Then each would wait for the other.
        """
        return self._model.gatherer is not None and self._model.find_unused

    def begins(self, syncing: bool, inside_nodes: bool) -> None:
        self._inside_nodes = inside_nodes
        self.in_order.begin(self.reduce_after_all_gathers or not syncing, self._last())

    def _last(self) -> int:
        """How many vectors wait for the end of the pass: those from the last one on that each rank has a shard of.

        That one says whether the pass ended with an error (``failed.py``). 0 where there is none.
        """
        for place, vector in enumerate(reversed(self.in_order.vectors()), 1):
            if vector.layout.owner is None and vector.layout.numel >= vector.layout.ranks:
                return place
        return 0

    def gradient_ready(self, parameter: Parameter) -> None:
        vector = self.in_order.vector_of[parameter]
        if len(parameter._post_accumulate_grad_hooks) > 1 and (parameter in vector.added or vector.holds_sums):
            kind, name = type(self._model).__name__, self._model._names[parameter]
            raise RuntimeError(
                f"a post-accumulate-grad hook of the program is on {name}, and in a second backward "
                f"pass before a step it would find the gradient of this pass alone: a {kind} adds them "
                "up elsewhere. Take register_hook, which is for the gradient of one pass, or one pass a step"
            )
        vector.used = True
        self.in_order.ready(parameter)
        if self._model.gatherer is not None:
            self._model.gatherer.after_backward(parameter)

    def _start_reducing(self, vector: ShardedVector) -> Wait:
        vector.convert_gradient()
        job: Callable[[], object] = partial(vector.reduce, inside_alone=self._inside_nodes)
        if len(self.in_order.waits) == len(self.in_order.vectors()) - self._last():
            self._word.before(vector, self._model.marks.failed)
            job = partial(vector.reduce, self._word.arrived, self._inside_nodes)
        after = vector.free_gradient if self._frees else vector.let_go
        return queue_of(vector.group, vector.whole.device).submit(job, after).result

    def all_ready(self, stays: bool) -> None:
        if self._model.gatherer is not None:
            self._model.gatherer.end()  # before reductions: another rank may be waiting for our gather
        self.in_order.complete()
        self._model.gradients_wait = True
        if not stays:
            self.in_order.start_full_ones(to_the_end=True)

    def over(self) -> None:
        self._all_arrive()
        self.in_order.learn_order()

    def _all_arrive(self) -> None:
        """Raises RuntimeError, on every rank, if some ranks ended this pass with an error and others did not."""
        for _ in self.in_order.arrivals():
            pass
        if self._model.find_unused:
            self._leave_unused_alone()
        if self._last():
            self._model.marks.check(self._word.first(), at_once=not self.in_order.order_known)
        else:
            self._model.marks.ask(self.in_order.vectors()[0].whole)

    def who_failed(self) -> list[bool] | None:
        """None where it has to be asked."""
        return self._word.of_ranks() if self._last() else None

    def _leave_unused_alone(self) -> None:
        """What no rank has had a gradient of since ``zero_grad`` has none, instead of zeros."""
        vectors = self.in_order.vectors()
        agreed = self._model._on_any_rank((vector.used for vector in vectors), vectors[0].whole.device)
        for vector, used in zip(vectors, agreed, strict=True):
            if not used:
                vector.forget_gradient()

    def _as_rank_0(self, came: list[Parameter]) -> Callable[[], list[ShardedVector]]:
        """The vectors in the order in which rank 0's were filled."""
        last_first = dict.fromkeys(self.in_order.vector_of[parameter] for parameter in reversed(came))
        vectors, model = self.in_order.vectors(), self._model
        weights = model.trained if "parameters" in model.keeps_whole else {}
        order = as_on_rank_0([vectors.index(vector) for vector in reversed(last_first)], model.group, weights)
        return lambda: [vectors[i] for i in order()]

    # ---- passes that this rank gave up, or has no data for

    def abandon(self, stays: bool) -> None:
        gatherer = self._model.gatherer
        if gatherer is not None:
            for unit in () if self.reduce_after_all_gathers else gatherer.rest():
                self.in_order.fill(p for vector in unit.vectors if vector.trained for p in vector.parameters.values())
            gatherer.end()
        self.in_order.fill()
        if not stays:
            self.in_order.start_full_ones(to_the_end=True)
            self._all_arrive()

    def without_data(self, inside_nodes: bool) -> None:
        """Take part in the other ranks' backward pass with zeros."""
        self._inside_nodes = inside_nodes
        self.in_order.begin(last=self._last())
        self.in_order.fill()
        self.all_ready(stays=False)
        self.over()

    def owe_nothing(self) -> None:
        """Where units are gathered, after a forward pass that ended with an error: make its backward pass, of zeros.

        Ranks that know of no error make theirs, and would otherwise gather what they need while this one gathers anew.
        Raises RuntimeError, on every rank, if there are such.
        """
        model, gatherer = self._model, self._model.gatherer
        if gatherer is None or not gatherer.owes_backward or running_backward() != NOT_BACKWARD:
            return
        held = {each: each.sums() for each in self.in_order.vectors()}
        self._inside_nodes = model.inside_nodes_forward
        gatherer.begin_without_gradients()
        model._stays, model.marks.failed = False, True
        self.in_order.begin(self.reduce_after_all_gathers, self._last())
        try:
            model.abandon()
        finally:
            model._end_of_backward()
        for vector, sums in held.items():  # all ranks had the error, so nothing was added
            vector.take_back(*sums)
