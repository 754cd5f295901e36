"""The backward passes of a ZeRO model: vectors of gradients leave in order, and are reduced to shards.

These are methods of ``ZeroModel``. The first six are called as the methods of ``Replica`` with the same names say.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch.nn import Parameter

from ringzero.data_parallel.in_order import InOrder, Wait, as_on_rank_0
from ringzero.data_parallel.passes import NOT_BACKWARD, running_backward
from ringzero.zero.vector import ShardedVector

# Where reduced gradients are freed: how many vectors may be on their way while the next one fills, as in FSDP2. Without
# a limit a fast backward pass would run ahead of a slow network, and at its end all gradients would be whole.
IN_FLIGHT = 1


def backward_begins(model: Any) -> None:
    model.heed_program()
    inside_nodes = model.no_sync_inside_nodes
    model.announce(*("backward_without_data", inside_nodes) if model._syncing else ("only_agree",))
    model.reduces_inside_nodes = inside_nodes
    model.in_order.begin(model.reduces_after_all_gathers or not model._syncing, _last(model))


def gradient_ready(model: Any, parameter: Parameter) -> None:
    vector = model.in_order.vector_of[parameter]
    if len(parameter._post_accumulate_grad_hooks) > 1 and (parameter in vector.added or vector.holds_sums):
        raise RuntimeError(
            f"a post-accumulate-grad hook of the program is on {model._names[parameter]}, and in a second backward "
            f"pass before a step it would find the gradient of this pass alone: a {type(model).__name__} adds them "
            "up elsewhere. Take register_hook, which is for the gradient of one pass, or one pass a step"
        )
    vector.used = True
    model.in_order.ready(parameter)
    if model.gatherer is not None:
        model.gatherer.after_backward(parameter)


def all_ready(model: Any) -> None:
    if model.gatherer is not None:
        model.gatherer.end()  # before reductions: another rank may be waiting for our gather
    model.in_order.complete()
    model.gradients_wait = True
    if not model._stays:
        model.in_order.start_full_ones(to_the_end=True)


def backward_over(model: Any) -> None:
    if not model._stays:
        _all_arrive(model)
        model.compare_weights(beside_order=not model.in_order.order_known)
        model.in_order.learn_order()


def abandon(model: Any) -> None:
    gatherer = model.gatherer
    if gatherer is not None:
        for unit in () if model.reduces_after_all_gathers else gatherer.rest():
            model.in_order.fill(p for vector in unit.vectors if vector.trained for p in vector.parameters.values())
        gatherer.end()
    model.in_order.fill()
    if not model._stays:
        model.in_order.start_full_ones(to_the_end=True)
        _all_arrive(model)


def backward_without_data(model: Any, inside_nodes: bool) -> None:
    """Take part in the other ranks' backward pass with zeros."""
    model._stays, model.reduces_inside_nodes = False, inside_nodes
    model.in_order.begin(last=_last(model))
    model.in_order.fill()
    model.all_ready()
    model.backward_over()


def owe_nothing(model: Any) -> None:
    """Where units are gathered, after a forward pass that ended with an error: make its backward pass, of zeros.

    Ranks that know of no error make theirs, and would otherwise gather what they need while this one gathers anew.
    Raises RuntimeError, on every rank, if there are such.
    """
    gatherer = model.gatherer
    if gatherer is None or not gatherer.owes_backward or running_backward() != NOT_BACKWARD:
        return
    held = {each: each.sums() for each in model.vectors()}
    model.reduces_inside_nodes = model.inside_nodes_forward
    gatherer.begin_without_gradients()
    model._stays, model.marks.failed = False, True
    model.in_order.begin(model.reduces_after_all_gathers, _last(model))
    try:
        model.abandon()
    finally:
        model.end_of_backward()
    for vector, sums in held.items():  # all ranks had the error, so nothing was added
        vector.take_back(*sums)


# ---- the vectors in their order


def in_order(model: Any, vectors: list[ShardedVector]) -> InOrder:
    """What has ``vectors`` leave in the order of rank 0's gradients."""
    in_flight = None if "gradients" in model.keeps_whole else IN_FLIGHT
    start, learn = partial(_start_reducing, model), partial(_as_rank_0, model)
    return InOrder(model.trained, vectors, start, learn, model.find_unused, in_flight)


def _start_reducing(model: Any, vector: ShardedVector) -> Wait:
    shown = None
    if len(model.in_order.waits) == len(model.vectors()) - _last(model):
        model.word.before(vector, model.marks.failed)
        shown = model.word.arrived
    return vector.reduce(model.reduces_inside_nodes, shown, frees="gradients" not in model.keeps_whole)


def _last(model: Any) -> int:
    """How many vectors wait for the end of the pass: those from the last one on that each rank has a shard of.

    That one says whether the pass ended with an error (``failed.py``). 0 where there is none.
    """
    for place, vector in enumerate(reversed(model.vectors()), 1):
        if vector.layout.owner is None and vector.layout.numel >= vector.layout.ranks:
            return place
    return 0


def _as_rank_0(model: Any, came: list[Parameter]) -> Callable[[], list[ShardedVector]]:
    """The vectors in the order in which rank 0's were filled."""
    last_first = dict.fromkeys(model.in_order.vector_of[parameter] for parameter in reversed(came))
    vectors = model.vectors()
    order = as_on_rank_0([vectors.index(vector) for vector in reversed(last_first)], model.group, model.whole_weights)
    return lambda: [vectors[i] for i in order()]


def _all_arrive(model: Any) -> None:
    """Raises RuntimeError, on every rank, if some ranks ended this pass with an error and others did not."""
    for _ in model.in_order.arrivals():
        pass
    if model.find_unused:
        _leave_unused_alone(model)
    if _last(model):
        model.marks.check(model.word.first(), at_once=not model.in_order.order_known)
    else:
        model.marks.ask(model.vectors()[0].whole)


def who_failed(model: Any) -> list[bool] | None:
    """Which ranks ended this pass with an error. None where it has to be asked."""
    return model.word.of_ranks() if _last(model) else None


def _leave_unused_alone(model: Any) -> None:
    """What no rank has had a gradient of since ``zero_grad`` has none, instead of zeros."""
    vectors = model.vectors()
    agreed = model._on_any_rank((vector.used for vector in vectors), vectors[0].whole.device)
    for vector, used in zip(vectors, agreed, strict=True):
        if not used:
            vector.forget_gradient()
