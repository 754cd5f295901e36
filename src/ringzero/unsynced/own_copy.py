"""Each rank trains its own copy of a module with its own optimizer; a subclass says how the copies come together."""

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, Self

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Module

from ringzero.collectives import ALGORITHMS, all_reduce, event_threads
from ringzero.collectives.run import needs_the_host
from ringzero.data_parallel.alike import broadcast_state, check_alike
from ringzero.data_parallel.executor import Job, queue_of
from ringzero.data_parallel.in_order import Wait
from ringzero.data_parallel.own_group import own_group
from ringzero.unsynced.end_to_end import joined, views


class OwnCopy(ABC):
    """``module``, this rank's copy, and ``optimizer``, which steps its parameters.

    All ranks must make it together. They start from rank 0's parameters and buffers; then

        loss.backward()
        trainer.step()
        trainer.zero_grad()

    on every rank the same number of times, and at the end ``finish()``, or all of it inside ``with trainer:``. To keep
    or to evaluate a model, take ``average()``. The optimizer's state and buffers are each rank's own. (BatchNorm trains
    with statistics of the batch; its running ones matter only in ``average()``.)

    ``trained``  ``{name: parameter}`` of those that require a gradient; a tied one comes once. Only these travel
    ``group``    a process group of its own, of the ranks that have the copies
    ``steps``    how many were made

    Raises ValueError when the ranks' modules or settings differ, for a complex parameter, parameters on several
    devices, and an optimizer that steps what is not in the module: each by name. RuntimeError when there is nothing to
    train.
    """

    def __init__(self, module: Module, optimizer: torch.optim.Optimizer, group: dist.ProcessGroup | None = None,
                 algorithm: str | None = None, **settings: object):  # fmt: skip
        ranks_of = group or dist.group.WORLD
        assert ranks_of is not None
        self.module, self.optimizer, self.steps = module, optimizer, 0
        self.trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
        _check_parameters(module, self.trained, optimizer)
        if algorithm is not None and algorithm not in (names := [*ALGORITHMS["all_reduce"], "auto"]):
            raise ValueError(f"algorithm is {algorithm!r}; take one of {', '.join(map(repr, names))}, or None")
        check_alike(module, (), ranks_of)
        _check_same(settings | {"algorithm": algorithm}, ranks_of)
        self._own = own_group(ranks_of, self)
        self.group, self._algorithm = self._own.group, algorithm
        broadcast_state([*module.parameters(), *module.buffers()], 0, self.group)
        event_threads.calm()
        device = next(iter(self.trained.values())).device
        self.device = torch.device("cpu") if needs_the_host(device, self.group) else device  # of what travels

    @abstractmethod
    def step(self) -> None:
        """Step the optimizer, and do what brings the copies together. Call it after ``loss.backward()``.

        Raises ValueError when other parameters require a gradient than at the beginning, or the optimizer has some that
        are not in the module.
        """
        self.steps += 1
        now = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        before = self.trained
        if changed := sorted(name for name in {**before, **now} if before.get(name) is not now.get(name)):
            raise ValueError(
                f"{', '.join(changed)}: frozen, unfrozen or replaced since the {type(self).__name__} was made; make a "
                "new one then, on every rank"
            )
        _check_steps(self.module, self.optimizer)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        self.module.zero_grad(set_to_none)

    def finish(self) -> None:  # noqa: B027
        """End what is on its way. All ranks must call it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is None:
            self.finish()

    def average(self) -> dict[str, Any]:
        """The mean model as a ``state_dict`` of the module: parameters, and buffers of floating-point numbers.

        Whatever else is in the module's ``state_dict`` is this rank's own. Sums are fp64. All ranks must ask together,
        and get the same bits.
        """
        buffers = [b for b in self.module.buffers() if b.is_floating_point()]
        tensors = [*self.trained.values(), *buffers]
        mean = views(self._mean(joined(tensors, torch.float64, self.device)), tensors)
        means = {id(tensor): part.to(tensor) for tensor, part in zip(tensors, mean, strict=True)}
        state = self.module.state_dict(keep_vars=True)
        copies = {name: v.detach().clone() if isinstance(v, Tensor) else v for name, v in state.items()}
        return {name: means.get(id(value), copies[name]) for name, value in state.items()}

    def consensus_distance(self) -> float:
        """Root of the mean squared distance of the ranks' parameters from their mean. All ranks must ask together."""
        mine = joined(self.trained.values(), torch.float64, self.device)
        squared = (mine - self._mean(mine)).square().sum()
        return math.sqrt(self._mean(squared.view(1), weighted=False).item())

    # ---- for subclasses

    def _mean(self, vector: Tensor, weighted: bool = True) -> Tensor:
        """Over the ranks, of a 1-D ``vector`` in fp64, with ``self._weight()`` if ``weighted``."""
        weight = torch.tensor([self._weight() if weighted else 1.0], dtype=vector.dtype, device=vector.device)
        total = self._sum(torch.cat([vector * weight, weight]))
        return total[:-1] / total[-1]

    def _weight(self) -> float:
        """Of this rank's model in the mean."""
        return 1.0

    def _sum(self, vector: Tensor) -> Tensor:
        """Over the ranks; ``vector`` may be overwritten."""
        self._beside(partial(self._all_reduce, vector))()
        return vector

    def _all_reduce(self, vector: Tensor) -> None:
        if self._algorithm is None:
            dist.all_reduce(vector, group=self.group)
        else:
            all_reduce(vector, algorithm=self._algorithm, group=self.group)

    def _beside(self, job: Job) -> Wait:
        """Begin ``job``, which may use the group, beside the computation; what is returned waits for its end."""
        return queue_of(self.group, self.device).submit(job).result


def _check_parameters(module: Module, trained: dict, optimizer: torch.optim.Optimizer) -> None:
    if not trained:
        raise RuntimeError(f"{type(module).__name__} has no parameter that requires a gradient: nothing to train")
    first, at = next(iter(trained.items()))
    for name, parameter in trained.items():
        if parameter.is_complex():
            raise ValueError(f"{name} is {parameter.dtype}; only real numbers are averaged: keep two real parameters")
        if parameter.device != at.device:
            raise ValueError(f"{name} is on {parameter.device}, {first} on {at.device}; put all on one device")
    _check_steps(module, optimizer)


def _check_steps(module: Module, optimizer: torch.optim.Optimizer) -> None:
    """Raise ValueError if ``optimizer`` steps a parameter that the module does not have."""
    ours = {id(parameter) for parameter in module.parameters()}
    for group in getattr(optimizer, "param_groups", []):
        for parameter in group["params"]:
            if id(parameter) not in ours:
                raise ValueError(
                    f"the optimizer steps a parameter of shape {tuple(parameter.shape)} that the "
                    f"{type(module).__name__} does not have: it would never be averaged; give a module that has it"
                )


def _check_same(settings: dict[str, object], group: dist.ProcessGroup) -> None:
    """Raise ValueError, on every rank, naming the first of ``settings`` in which a rank differs from rank 0."""
    mine = {name: str(value) for name, value in settings.items()}
    everyone: list[dict[str, str]] = [{}] * group.size()
    dist.all_gather_object(everyone, mine, group=group)
    for rank, theirs in enumerate(everyone):
        for name, value in everyone[0].items():
            if theirs.get(name) != value:
                raise ValueError(f"{name} is {value} on rank 0 and {theirs.get(name)} on rank {rank}; make them alike")
