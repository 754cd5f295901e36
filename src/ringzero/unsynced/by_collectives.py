"""A synchronous parameter server of two collectives: a push is a reduce to the server, a pull a broadcast from it.

NCCL knows no messages that come whenever they come, but it knows these two, and all ranks call them in one order. So
this runs on GPUs, where ``ParameterServer`` talks through the host's memory.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Module

from ringzero.collectives import broadcast, reduce
from ringzero.collectives.schedule import chunk_bounds
from ringzero.unsynced.own_copy import OwnCopy


class ServedByCollectives(OwnCopy):
    """``module``, whose chunk s of the parameters rank s of ``servers`` steps, by ``optimizer`` and its options.

    All ranks train, those that serve too. In each step a chunk is reduced to its server, which takes the mean, and is
    broadcast from there. Parameters must be of one type. Raises ValueError unless ``servers`` is 1 to the number of
    ranks, and as ``OwnCopy``.
    """

    def __init__(self, module: Module, optimizer: Callable[..., torch.optim.Optimizer], *, servers: int = 1,
                 group: dist.ProcessGroup | None = None, **options: Any):  # fmt: skip
        size = dist.get_world_size(group)
        if isinstance(servers, bool) or not isinstance(servers, int) or not 1 <= servers <= size:
            raise ValueError(f"servers is {servers!r}; with {size} ranks it is 1 to {size}")
        kinds = {p.dtype: name for name, p in module.named_parameters() if p.requires_grad}
        if len(kinds) > 1:
            (first, one), (second, other) = list(kinds.items())[:2]
            raise ValueError(f"{one} is {first} and {other} is {second}; a server takes parameters of one type")
        super().__init__(module, cast(Any, None), group, servers=servers)  # the servers have one
        self._values = torch.cat([p.detach().reshape(-1) for p in self.trained.values()]).to(self.device)
        bounds = chunk_bounds(len(self._values), servers).tolist()
        self._chunks = [slice(start, stop) for start, stop in pairwise(bounds)]
        self.server = None
        if self.group.rank() < servers:
            mine = torch.nn.Parameter(self._values[self._chunks[self.group.rank()]])
            self.server = optimizer([mine], **options)

    def step(self) -> None:
        super().step()
        if missing := [name for name, p in self.trained.items() if p.grad is None]:
            raise RuntimeError(f"no gradient for {', '.join(missing)}; freeze what the loss does not depend on")
        gradient = torch.cat([cast(Tensor, p.grad).reshape(-1) for p in self.trained.values()]).to(self.device)
        self._beside(lambda: self._push_and_pull(gradient))()
        parts = self._values.split([p.numel() for p in self.trained.values()])
        for parameter, part in zip(self.trained.values(), parts, strict=True):
            parameter.detach().copy_(part.view(parameter.shape))

    def _push_and_pull(self, gradient: Tensor) -> None:
        for server, chunk in enumerate(self._chunks):
            reduce(gradient[chunk], server, "avg", group=self.group)  # push
            if server == self.group.rank():
                assert self.server is not None
                mine = self.server.param_groups[0]["params"][0]
                mine.grad = gradient[chunk]
                self.server.step()
                mine.grad = None
            broadcast(self._values[chunk], server, group=self.group)  # pull
