"""Steps of a sharded model, and other changes of its parameters: on each rank of its shards, which all ranks share."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from ringzero.data_parallel.in_order import is_compared
from ringzero.data_parallel.replica import Replica
from ringzero.zero import guards, state
from ringzero.zero.muon import Muon
from ringzero.zero.optimizers import check_same
from ringzero.zero.vector import ShardedVector


def attach(model: Any) -> None:
    """Let home and optimizer know of all vectors."""
    model.home.attach(model.vectors(), model.optimizer)
    model.mark_masters()
    if isinstance(model.optimizer, Muon):
        model.optimizer.attach(model.vectors(), model.shard_group)


def mark_masters(model: Any) -> None:
    """Have a program be told that the gradients it looks for, in the optimizer's groups, are not there."""
    for vector in () if model.home.delayed else model.vectors():  # a delayed step goes on, with gradients there
        vector.mark_master()


def step(model: Any, closure: Callable[[], Any] | None = None) -> Any:
    """Step this rank's shards with their gradients, and let the ranks share what they stepped.

    ``closure`` computes the loss and its gradients first, as torch's optimizers take it. Returns what it returns.
    """
    loss = None if closure is None else closure()
    options = [{k: v for k, v in group.items() if k != "params"} for group in model.optimizer.param_groups]
    model.announce("step_with", options)  # only schedulers of ranks that have data go on
    _step(model)
    return loss


def step_with(model: Any, options: list[dict]) -> None:
    """Step with these ``options`` of the optimizer's parameter groups."""
    for group, given in zip(model.optimizer.param_groups, options, strict=True):
        group.update(given)
    _step(model)


@torch.no_grad()
def _step(model: Any) -> None:
    model._check_usable()
    model.owe_nothing()
    guards.check_unchanged(model)
    model.heed_program(step=True)
    model.heed_data()
    guards.check_may_step(model)
    model.steps += 1
    if model.steps > 1 and is_compared(model.steps):  # the first time it was when the model was made
        check_same(model.optimizer, model.group)
    for vector in () if model.home.delayed else model.vectors():
        vector.master.grad = None
    with _hooks_after_step(model.optimizer):
        model.steps_now = True
        try:
            model.home.step(model.optimizer, model.vectors())
        finally:
            model.steps_now = False
            model.mark_masters()
        model.gradients_wait = False
        model.share()


@contextmanager
def _hooks_after_step(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Call the hooks of ``register_step_post_hook`` once, after what is inside: they may read parameters."""
    hooks, optimizer._optimizer_step_post_hooks = optimizer._optimizer_step_post_hooks, OrderedDict()
    try:
        yield
    finally:
        optimizer._optimizer_step_post_hooks = hooks
    for hook in hooks.values():
        hook(optimizer, (), {})


@torch.no_grad()
def change(model: Any, of_vector: Callable[[ShardedVector], None]) -> None:
    """Call ``of_vector`` for each vector, which may write to its master and states; then share what it wrote."""
    model.heed_data()
    model.home.update(model.vectors(), of_vector)
    model.share()


@torch.no_grad()
def share(model: Any) -> None:
    """Bring the module's parameters up to date with what the ranks' optimizers hold."""
    for vector in model.vectors():
        vector.bring_up_to_date()
        if "parameters" in model.keeps_whole:
            vector.gather()
        vector.version_of_master = vector.master._version


def heed_masters(model: Any) -> None:
    """Share what the program wrote to the optimizer's parameters, as who clamps those of its groups. So did all ranks.

    A step that goes on by itself writes there, too.
    """
    if not model.home.delayed and any(v.master._version != v.version_of_master for v in model.vectors()):
        model.share()


@contextmanager
def whole_parameters(model: Any, write: bool = False) -> Iterator[None]:
    """Inside, every parameter is whole, to be read outside of a forward pass. All ranks must enter it together.

    With ``write`` changes made in place stay. All ranks must make the same, since each keeps those of its shard.
    Without it, the next step refuses them where the optimizer has a copy of its own.
    """
    model._check_usable()
    guards.check_unchanged(model)
    model.heed_data()
    frozen = model.frozen_shards.vectors
    with nullcontext() if model.gatherer is None else model.gatherer.all_whole():
        before = {vector: vector.whole[vector.owned].clone() for vector in (*model.vectors(), *frozen)} if write else {}
        yield
        if write:
            with torch.no_grad():
                model.home.update(model.vectors(), lambda vector: vector.take_over_whole(before[vector]))
                for vector in frozen:
                    vector.take_over_whole(before[vector])
                    vector.bring_up_to_date()
    if write:
        model.share()


@torch.no_grad()
def heed_data(model: Any) -> None:
    """Take over what the program wrote to parameters by ``data``, of which the masters do not know."""
    for vector in model.vectors():
        vector.heed_data()


def leave(model: Any) -> None:
    """Leave the module whole, with what was stepped, as one process would have it. All ranks must call it.

    So does a module that is wrapped again. Raises RuntimeError if there are gradients that no step has used yet.
    """
    model.heed_program()
    guards.check_may_leave(model)
    model.heed_data()
    trained = state.trained_values(model)
    if model.frozen is not None:
        model.frozen.give_back()
    model.frozen_shards.give_back()
    if model.gatherer is not None:
        model.gatherer.leave()
    for vector in model.vectors():
        vector.leave()
    for name, parameter in model.trained.items():
        parameter.data = trained[name].to(parameter.device, copy=True)
    Replica.leave(model)
