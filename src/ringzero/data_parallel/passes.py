"""When a backward pass of a replica begins and ends, and what of the replica is called meanwhile.

A backward pass may run others inside, as with ``checkpoint(use_reentrant=True)``. All count as one: it begins when the
outermost reaches an output of the module, or else a parameter, and ends with it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import Parameter

from ringzero.data_parallel import structure
from ringzero.data_parallel.leftovers import holders

running_backward, NOT_BACKWARD = torch._C._current_graph_task_id, -1  # autograd's number of a backward pass


def reaches_output(replica: Any, _gradient: torch.Tensor) -> None:
    """Autograd has come to an output of the module."""
    if not replica.in_backward and replica._task != running_backward():
        replica._task = running_backward()
        _at_the_end(partial(_all_ready, replica))


def gradient_complete(replica: Any, parameter: Parameter) -> None:
    """Autograd has completed ``parameter.grad``."""
    if not (replica._syncing or replica.hooks_in_no_sync):
        holders.add(replica)
        return
    if replica._task is None:  # it came to none of our outputs: the module was called without its wrapper
        reaches_output(replica, parameter)
        structure.check_wrapped(replica)
    if not replica.in_backward:
        _begin(replica)
    # Other hooks of the program come after this one, and may still change the gradient.
    if replica._waiting:
        replica.gradient_ready(replica._waiting.pop())
    if len(parameter._post_accumulate_grad_hooks) > 1:
        replica._waiting.append(parameter)
    else:
        replica.gradient_ready(parameter)


def _begin(replica: Any) -> None:
    agree, replica._weights_agree = replica._weights_agree, None
    if agree is not None:
        agree()
    replica.marks.check_last_pass()
    _set_in_backward(replica, True)
    replica._stays, replica._has_graph = not replica._syncing, torch.is_grad_enabled()
    holders.add(replica)
    replica.backward_begins()


def _all_ready(replica: Any) -> None:
    replica._task = None
    if replica.in_backward:
        if replica._waiting:
            replica.gradient_ready(replica._waiting.pop())
        holders.discard(replica)
        _with_a_better_reason(replica, replica.all_ready)
        # After the end of every model in this pass: ranks whose models end in another order would wait for ever.
        _at_the_end(partial(_over, replica))
    elif replica._syncing:  # no gradient at all: as with autograd.grad, or because all parameters were replaced
        structure.check_wrapped(replica, at_all_costs=True)


def _over(replica: Any) -> None:
    _with_a_better_reason(replica, replica.backward_over)
    if replica._has_graph:
        _refuse_graphs(replica)
    end(replica)


class _Mean(torch.autograd.Function):
    """A mean over the ranks, of which autograd cannot know how it depends on the parameters."""

    @staticmethod
    def forward(ctx: Any, mean: torch.Tensor, _anything_with_a_gradient: torch.Tensor) -> torch.Tensor:
        return mean.clone()

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> Any:
        raise RuntimeError(
            "a loss is computed from parameter.grad of backward(create_graph=True), which is a mean over the ranks and "
            "whose graph would be this rank's alone; take the gradients of torch.autograd.grad(loss, parameters, "
            "create_graph=True), and call backward() of a loss with a function of them"
        )


def _refuse_graphs(replica: Any) -> None:
    """After ``backward(create_graph=True)``: in one process gradients have graphs, and these have none."""
    for parameter in replica.trained.values():
        if type(parameter.grad) is torch.Tensor:  # and not what a sharded model has in its place
            with torch.enable_grad():
                parameter.grad = _Mean.apply(parameter.grad.detach(), parameter.grad.new_zeros((), requires_grad=True))


def end(replica: Any) -> None:
    """From now on the replica is in no backward pass."""
    replica._task = None
    replica._waiting.clear()
    replica.marks.failed = False
    _set_in_backward(replica, False)


def _set_in_backward(replica: Any, value: bool) -> None:
    replica.in_backward = value
    for own in replica._own_groups:
        own.in_use = value


def _with_a_better_reason(replica: Any, job: Callable[[], None]) -> None:
    try:
        job()
    except RuntimeError:
        if replica.in_backward:
            structure.check_gone(replica)
        raise


def _at_the_end(call: Callable[[], None]) -> None:
    """Have autograd ``call`` when the present backward pass is over."""
    torch.autograd.Variable._execution_engine.queue_callback(call)
