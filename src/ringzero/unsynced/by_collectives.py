"""A synchronous parameter server of two collectives: a push is a reduce to the server, a pull a broadcast from it.

NCCL knows no messages that come whenever they come, but it knows these two, and all ranks call them in one order. So
this runs on GPUs, where ``ParameterServer`` talks through the host's memory.
"""

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Module

from ringzero.collectives import broadcast, reduce
from ringzero.collectives.formats import chunks_of
from ringzero.collectives.schedule import is_whole
from ringzero.unsynced.end_to_end import check_one_type, gradients_of, joined, write_back
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
        if not is_whole(servers) or not 1 <= servers <= size:
            raise ValueError(f"servers is {servers!r}; with {size} ranks it is 1 to {size}")
        super().__init__(module, cast(Any, None), group, servers=servers)  # the servers have one
        check_one_type(self.trained)
        self._parameters = list(self.trained.values())
        self._values = joined(self._parameters, device=self.device)
        self._chunks = chunks_of(self._values, servers)
        self.server = None
        if self.group.rank() < servers:
            mine = torch.nn.Parameter(self._chunks[self.group.rank()])
            self.server = optimizer([mine], **options)

    def step(self) -> None:
        super().step()
        gradient = joined(gradients_of(self.trained), device=self.device)
        self._beside(lambda: self._push_and_pull(gradient))()
        write_back(self._values, self._parameters)

    def _push_and_pull(self, gradient: Tensor) -> None:
        gradients = chunks_of(gradient, len(self._chunks))
        for server, (chunk, its_gradient) in enumerate(zip(self._chunks, gradients, strict=True)):
            reduce(its_gradient, server, "avg", group=self.group)  # push
            if server == self.group.rank():
                assert self.server is not None
                mine = self.server.param_groups[0]["params"][0]
                mine.grad = its_gradient
                self.server.step()
                mine.grad = None
            broadcast(chunk, server, group=self.group)  # pull
