"""Parameters that are not trained: what they were given as, sharded among the ranks.

`FrozenShards`  where parameters are sharded: of a unit's frozen ones a rank has its shard, which is gathered and freed
                with those that are trained
`Frozen`        what stays whole where ``mixed_precision`` rounds what is computed with. The module has the rounded
                ones; what was given is kept beside, in shards

So ``state_dict``, checkpoints and ``leave`` have what was given.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import torch
import torch.distributed as dist
from torch.nn import Parameter

from ringzero.collectives import all_gather
from ringzero.collectives.run import device_of
from ringzero.zero import state
from ringzero.zero.sharding import Layout
from ringzero.zero.vector import ShardedVector


class Frozen:
    """``parameters``, by name, that become of type ``dtype`` now; those of ``each_rank_s_own`` are not sharded."""

    def __init__(self, parameters: Mapping[str, Parameter], dtype: torch.dtype, group: dist.ProcessGroup,
                 each_rank_s_own: set[str]):  # fmt: skip
        self._group, self._own = group, each_rank_s_own
        self._parameters: dict[str, Parameter] = {}
        self._kept: dict[str, torch.Tensor] = {}  # shards, 1-D
        for name, parameter in parameters.items():
            if parameter.is_floating_point() and parameter.dtype != dtype:
                self._parameters[name] = parameter
                self._kept[name] = parameter.detach().reshape(-1)[self._part(name)].clone()
                parameter.data = parameter.data.to(dtype)

    def _part(self, name: str) -> slice:
        parameter = self._parameters[name]
        if name in self._own:
            return slice(0, parameter.numel())
        return Layout(((name, tuple(parameter.shape)),), self._group.size()).shard(self._group.rank())

    @property
    def names(self) -> Collection[str]:
        return self._kept.keys()

    @torch.no_grad()
    def values(self, names: set[str] | None = None) -> Iterator[tuple[str, torch.Tensor]]:
        """``(name, what was given)``, whole; where a program has written to the module since, what it wrote.

        All ranks must ask together, for all or for the same ``names``.
        """
        for name, parameter in self._parameters.items():
            if names is None or name in names:
                kept = self._kept[name]
                if name not in self._own:
                    flat = kept.new_empty(parameter.numel(), device=device_of(self._group))
                    flat[self._part(name)] = kept
                    kept = all_gather(flat, group=self._group).to(kept.device)
                given = kept.view(parameter.shape)
                unchanged = given.to(parameter.dtype) == parameter
                yield name, torch.where(unchanged, given, parameter.to(given.dtype))

    @torch.no_grad()
    def take(self, name: str, value: torch.Tensor) -> None:
        """From now on ``value``, whole, is what was given; the module has been told."""
        if name in self._kept:
            self._kept[name].copy_(value.reshape(-1)[self._part(name)])

    def give_back(self, names: set[str] | None = None) -> None:
        """Have the parameters be what was given, and keep it no more. All ranks must call it."""
        for name, value in list(self.values(names)):
            self._parameters.pop(name).data = value
            del self._kept[name]


class FrozenShards:
    """``parameters``, by name, in the vectors that ``make`` makes of some of them."""

    def __init__(self, parameters: Mapping[str, Parameter],
                 make: Callable[[dict[str, Parameter]], Iterable[ShardedVector]]):  # fmt: skip
        self._make, self.vectors = make, list(make(dict(parameters)) if parameters else ())

    @property
    def parameters(self) -> dict[str, Parameter]:
        return {name: p for vector in self.vectors for name, p in vector.parameters.items()}

    def values(self) -> Iterator[tuple[str, torch.Tensor]]:
        """``(name, what was given)``, whole. All ranks must ask together."""
        for vector in self.vectors:
            yield from state.whole(vector, vector.master.detach()).items()

    def give_back(self, names: set[str] | None = None) -> None:
        """Have the parameters, or those with ``names``, be whole and what was given. All ranks must call it."""
        stay, rest = [], {}
        for vector in self.vectors:
            if names is not None and names.isdisjoint(vector.parameters):
                stay.append(vector)
                continue
            whole = state.whole(vector, vector.master.detach())
            vector.leave()
            for name, parameter in vector.parameters.items():
                parameter.data = whole[name].to(parameter.device, copy=True)
                if names is not None and name not in names:
                    rest[name] = parameter
        self.vectors = [*stay, *(self._make(rest) if rest else [])]
