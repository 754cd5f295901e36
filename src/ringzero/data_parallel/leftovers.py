"""Gradients that ``no_sync`` left on a rank, and that no backward pass outside of it has averaged yet.

To step with them makes the ranks' models differ. torch calls ``_check`` before each step of any optimizer. A program
may have averaged them itself, so what is left over is compared among the ranks.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Protocol
from weakref import WeakSet

import torch
import torch.distributed as dist
from torch.nn import Parameter
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ringzero.data_parallel import behind


class Holder(Protocol):
    """A replica."""

    group: dist.ProcessGroup
    trained: dict[str, Parameter]

    @property
    def in_backward(self) -> bool: ...

    def __hash__(self) -> int: ...


holders: WeakSet[Holder] = WeakSet()  # replicas with gradients that were not averaged


@cache
def refuse_steps(replica_of: Callable[[torch.Tensor], Any]) -> None:
    """From now on raise RuntimeError where an optimizer steps with gradients that differ between the ranks.

    And where ``SparseAdam`` would step those that came sparse and are dense after the average. Before a step ranks that
    are ``behind`` catch up.
    """
    register_optimizer_step_pre_hook(partial(_check, replica_of))


def _check(replica_of: Callable[[torch.Tensor], Any], optimizer: torch.optim.Optimizer, *_: Any) -> None:
    if isinstance(optimizer, torch.optim.SparseAdam):
        for parameter in [p for group in optimizer.param_groups for p in group["params"]]:
            owner = replica_of(parameter)
            if owner is not None and parameter.grad is not None and not parameter.grad.is_sparse:
                raise RuntimeError(
                    f"SparseAdam takes sparse gradients, and a {type(owner).__name__} averages those of a parameter of "
                    f"shape {tuple(parameter.shape)} as dense ones; take another optimizer, such as Adagrad, or "
                    "NaiveDataParallel, which leaves them sparse"
                )
    if holders:
        stepped = {p for group in optimizer.param_groups for p in group["params"] if p.grad is not None}
        for holder in list(holders):
            if not stepped.isdisjoint(holder.trained.values()):
                if holder.in_backward:
                    raise RuntimeError(
                        f"this {type(optimizer).__name__} steps inside a backward pass, or after one that ended with "
                        "an error, with gradients that are not averaged yet; step when backward() has returned, or let "
                        "DistributedDataParallel(module, step=optimizer) do it in the pass"
                    )
                _compare(holder, stepped)
    behind.before_step(optimizer)


@torch.no_grad()
def _compare(holder: Holder, stepped: set[Parameter]) -> None:
    """Raise RuntimeError unless all ranks have the same gradients, as far as their norms tell."""
    gradients = [_real(p.grad) if p in stepped else p.new_zeros(1) for p in holder.trained.values()]
    norms = torch.stack([norm.double() for norm in torch._foreach_norm(gradients)]).nan_to_num()
    both = torch.cat([norms, -norms])
    dist.all_reduce(both, op=dist.ReduceOp.MIN, group=holder.group)
    low, high = both.chunk(2)
    apart = (-high - low > 1e-3 * -high).tolist()  # averages may be rounded in different ways
    if differ := [name for name, differs in zip(holder.trained, apart, strict=True) if differs]:
        raise RuntimeError(
            f"this step would use gradients that no_sync left on each rank and that nobody averaged, so the ranks "
            f"would drift apart: {', '.join(differ[:5])}{', ...' * (len(differ) > 5)}; make the last backward pass "
            "before each step outside of no_sync, also in the last window of an epoch, or call zero_grad()"
        )
    holders.discard(holder)  # the program has averaged them itself


def _real(gradient: Any) -> torch.Tensor:
    gradient = gradient.to_dense() if gradient.is_sparse else gradient
    return torch.view_as_real(gradient.resolve_conj()) if gradient.is_complex() else gradient
