"""Optimizers of ranks that were out of data first: inside ``join`` they made fewer steps than those of other ranks.

Then momentum is older there, and the next step would make the ranks drift apart. So they take over the states and the
options of a rank that had data to the end: when ``join`` is over if each rank has made a step before, and otherwise,
since nobody knows the optimizer of a rank that has not, in its next step.
"""

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch.nn import Parameter
from torch.optim import Optimizer

from ringzero.collectives.run import device_of

# Of models that were in ``join``: the optimizers that have stepped them, in this order.
_stepped: WeakKeyDictionary[Any, WeakKeyDictionary[Optimizer, None]] = WeakKeyDictionary()
_behind: WeakKeyDictionary[Any, tuple[int, set[str]]] = WeakKeyDictionary()  # from which rank, and what of it


def watch(model: Any) -> None:
    """``model`` is in ``join`` from now on. Raises RuntimeError, on every rank, if ranks are behind since the last."""
    if model in _behind:
        raise RuntimeError(
            "in the last join a rank had no data at all, so the states of its optimizer are still older than the other "
            "ranks'; make a step on every rank before the next join"
        )
    _stepped.setdefault(model, WeakKeyDictionary())


def catch_up(model: Any, rank: int) -> None:
    """Have the optimizers that step ``model`` be on every rank as they are on ``rank``."""
    here = list(_stepped[model])
    has_states = any(_numbers(optimizer.state.get(p, {})) for optimizer in here for p in model.trained.values())
    everywhere: list[tuple[list[str], bool]] = [([], False)] * model.group.size()
    dist.all_gather_object(everywhere, ([_kind(optimizer) for optimizer in here], has_states), group=model.group)
    kinds, has_states = everywhere[rank]
    if all(theirs == kinds for theirs, _ in everywhere):
        for optimizer in here:
            _take_over(model, optimizer, rank, set(model.trained))
    elif has_states:
        _behind[model] = rank, set(model.trained)


def before_step(optimizer: Optimizer) -> None:
    """``optimizer`` is about to make a step."""
    steps = _steps(optimizer) if _stepped else set()
    for model, optimizers in list(_stepped.items()):
        if not steps.isdisjoint(model.trained.values()):
            optimizers[optimizer] = None
            if model in _behind:
                rank, names = _behind[model]
                _take_over(model, optimizer, rank, names)
                if not names:
                    del _behind[model]


def _steps(optimizer: Optimizer) -> set[Parameter]:
    return {parameter for own in optimizer.param_groups for parameter in own["params"]}


class _Like(NamedTuple):
    shape: torch.Size
    dtype: torch.dtype
    on_cpu: bool


@torch.no_grad()
def _take_over(model: Any, optimizer: Optimizer, rank: int, names: set[str]) -> None:
    """Those of the ``names`` that ``optimizer`` steps, which are taken out of them.

    Raises RuntimeError, on every rank, if the ranks' optimizers are of different kinds.
    """
    group = model.group
    kinds = [""] * group.size()
    dist.all_gather_object(kinds, _kind(optimizer), group=group)
    if other := next((f"rank {r} with {kind}" for r, kind in enumerate(kinds) if kind != kinds[rank]), None):
        raise RuntimeError(
            f"after join rank {rank}, which made most steps, steps with {kinds[rank]}, and {other}, which cannot take "
            "over its states; make the same optimizer on every rank"
        )
    steps = _steps(optimizer)
    named = {name: p for name, p in model.trained.items() if name in names and p in steps}
    names -= named.keys()
    mine = {name: optimizer.state.get(parameter, {}) for name, parameter in named.items()}
    described: list[Any] = [
        {name: {key: _described(value) for key, value in states.items()} for name, states in mine.items()},
        [{key: value for key, value in own.items() if key != "params"} for own in optimizer.param_groups],
    ]
    dist.broadcast_object_list(described, group_src=rank, group=group)
    theirs, options = described
    for name, states in theirs.items():
        for key, value in states.items():
            if isinstance(value, _Like):
                states[key] = _sent(mine[name].get(key), value, rank, group)
        if group.rank() != rank:
            optimizer.state.pop(named[name], None)
            if states:
                optimizer.state[named[name]] = states
    for own, given in zip(optimizer.param_groups, options, strict=True):
        own.update(given)


def _numbers(states: dict) -> bool:
    return any(value is not None for value in states.values())


def _kind(optimizer: Optimizer) -> str:
    return f"{type(optimizer).__name__} of {len(_steps(optimizer))} parameters in {len(optimizer.param_groups)} groups"


def _described(value: Any) -> Any:
    return _Like(value.shape, value.dtype, value.device.type == "cpu") if isinstance(value, torch.Tensor) else value


def _sent(mine: torch.Tensor | None, like: _Like, rank: int, group: dist.ProcessGroup) -> torch.Tensor:
    """What ``rank`` has, on every rank."""
    device = device_of(group)
    if group.rank() == rank:
        assert mine is not None
        numbers = mine.to(device).contiguous()
    else:
        numbers = torch.empty(like.shape, dtype=like.dtype, device=device)
    dist.broadcast(numbers, group_src=rank, group=group)
    return numbers.cpu() if like.on_cpu else numbers
