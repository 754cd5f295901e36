"""Gradients that no backward pass has averaged: what ``no_sync`` left on a rank, and what ``autograd.grad`` returned.

So are those of parameters that no replica has, such as a loss function's. To step with them makes the ranks' models
differ. torch calls ``_check`` before each step of any optimizer. A program may have averaged them itself, so what no
pass has averaged since the optimizer's last step is compared among the ranks.
"""

from functools import cache
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ringzero.data_parallel import behind
from ringzero.data_parallel.hooked import replica_of

replicas: WeakValueDictionary[int, Any] = WeakValueDictionary()  # by number: made in the same order on every rank
holders: WeakSet[Any] = WeakSet()  # those with gradients that were not averaged
_stepped: WeakKeyDictionary[torch.optim.Optimizer, WeakKeyDictionary[Any, int]] = WeakKeyDictionary()  # after pass
_looked_at: WeakKeyDictionary[torch.optim.Optimizer, list[int]] = WeakKeyDictionary()  # ids of what it steps, ...
NO_SYNC = (
    "that no_sync left on each rank and that nobody averaged, so the ranks would drift apart: {}; make the last "
    "backward pass before each step outside of no_sync, also in the last window of an epoch, or call zero_grad()"
)
NO_PASS = (
    "that no backward pass brought, such as those of torch.autograd.grad, and that differ between the ranks: {}; call "
    "backward() of a loss, or average them on all ranks before the step"
)

NO_REPLICA = (
    "of parameters that nobody averages, and that differ between the ranks: {}; wrap a module that holds these "
    "parameters, too (again, if they came or were unfrozen later), or give those that each rank is to train by itself "
    "an optimizer of their own"
)


@cache
def refuse_steps() -> None:
    """From now on raise RuntimeError where an optimizer steps with gradients that differ between the ranks.

    And where ``SparseAdam`` would step those that came sparse and are dense after the average. Before a step ranks that
    are ``behind`` catch up.
    """
    register_optimizer_step_pre_hook(_check)


def _check(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    if isinstance(optimizer, torch.optim.SparseAdam):
        for parameter in [p for group in optimizer.param_groups for p in group["params"]]:
            owner = replica_of(parameter)
            if owner is not None and parameter.grad is not None and not parameter.grad.is_sparse:
                raise RuntimeError(
                    f"SparseAdam takes sparse gradients, and a {type(owner).__name__} averages those of a parameter of "
                    f"shape {tuple(parameter.shape)} as dense ones; take another optimizer, such as Adagrad, or "
                    "NaiveDataParallel, which leaves them sparse"
                )
    before = _stepped.setdefault(optimizer, WeakKeyDictionary())
    of_firsts = {replica_of(group["params"][0]) for group in optimizer.param_groups if group["params"]}
    for holder in [each for _, each in sorted(replicas.items())]:
        if holder not in of_firsts and _steps(optimizer).isdisjoint(map(id, holder.trained.values())):
            continue
        if replica_of(next(iter(holder.trained.values()))) is not holder:
            continue  # the module was wrapped again
        if holder in holders:
            if holder.in_backward:
                raise RuntimeError(
                    f"this {type(optimizer).__name__} steps inside a backward pass, or after one that ended with "
                    "an error, with gradients that are not averaged yet; step when backward() has returned, or let "
                    "DistributedDataParallel(module, optimizer=optimizer) do it in the pass"
                )
            if holder.in_join:
                raise RuntimeError(f"inside join, this step would use gradients {NO_SYNC.format('...')}")
            _compare(holder, _trained(holder, optimizer), NO_SYNC)
        in_the_pass = holder.in_backward or holder.optimizer is optimizer  # DDP steps each bucket as it arrives
        alike = not holder.in_join and holder.passes != holder.joined  # or else some ranks made no step since the pass
        if before.get(holder, 0) == holder.passes and alike and not in_the_pass:
            _compare(holder, _trained(holder, optimizer), NO_PASS)
        before[holder] = holder.passes
        if not (holder.in_join or in_the_pass):
            _compare_strangers(holder, optimizer)
    behind.before_step(optimizer)


def _steps(optimizer: torch.optim.Optimizer) -> set[int]:
    """The ids of the parameters that it steps."""
    return {*map(id, chain.from_iterable(group["params"] for group in optimizer.param_groups))}


def _trained(holder: Any, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Parameters that ``holder`` trains and ``optimizer`` steps, by name."""
    steps = _steps(optimizer)
    return {name: p for name, p in holder.trained.items() if id(p) in steps}


def _compare_strangers(holder: Any, optimizer: torch.optim.Optimizer) -> None:
    """Raise RuntimeError if the ranks' gradients differ of parameters that no replica has.

    It looks in the optimizer's first step, and when it steps other parameters than in the last. A message comes only
    where there are such: without any, a rank may leave a step out, as after an error of its own.
    """
    steps = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    before, _looked_at[optimizer] = _looked_at.get(optimizer), [*map(id, steps)]
    if _looked_at[optimizer] == before:
        return
    names = {p: name for name, p in [*holder.module.named_parameters(), *holder.module.named_buffers()]}
    shapes = {p: f"number {i} of the optimizer, of shape {tuple(p.shape)}" for i, p in enumerate(steps)}
    strangers = {names.get(p, shapes[p]): p for p in steps if replica_of(p) is None}
    for name in holder._each_rank_s_own:  # which other ranks do not have
        strangers.pop(name, None)
    if strangers:
        _compare(holder, strangers, NO_REPLICA)


@torch.no_grad()
def _compare(holder: Any, trained: dict[str, Any], why: str) -> None:
    """Raise RuntimeError unless all ranks have the same gradients of the parameters ``trained``.

    That is, as far as the gradients' norms tell.
    """
    gradients = [p.new_zeros(1) if p.grad is None else _real(p.grad) for p in trained.values()]
    device = next(iter(holder.trained.values())).device
    norms = torch.stack([norm.to(device, torch.float64) for norm in torch._foreach_norm(gradients)]).nan_to_num()
    both = torch.cat([norms, -norms])
    dist.all_reduce(both, op=dist.ReduceOp.MIN, group=holder.group)
    low, high = both.chunk(2)
    apart = (-high - low > 1e-3 * -high).tolist()  # averages may be rounded in different ways
    if differ := [name for name, differs in zip(trained, apart, strict=True) if differs]:
        names = ", ".join(differ[:5]) + ", ..." * (len(differ) > 5)
        raise RuntimeError(f"this step would use gradients {why.format(names)}")
    if trained.keys() == holder.trained.keys():
        holders.discard(holder)  # the program has averaged them itself


def _real(gradient: Any) -> torch.Tensor:
    gradient = gradient.to_dense() if gradient.is_sparse else gradient
    return torch.view_as_real(gradient.resolve_conj()) if gradient.is_complex() else gradient
