"""The second tier: masters, the optimizer's states and, if asked for, parameters in the host's memory."""

import copy
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psutil
import torch
import torch.distributed as dist

from ringzero.data_parallel.executor import Done, Queue, Stream, Thread
from ringzero.zero.home import Device
from ringzero.zero.link import Link
from ringzero.zero.muon import Muon
from ringzero.zero.optimizers import without_model
from ringzero.zero.vector import ShardedVector


class Host(Device):
    """Masters, states and the step are on the host; gradients are copied there once they are reduced.

    Ren et al., "ZeRO-Offload: Democratizing Billion-Scale Model Training", USENIX ATC 2021. While a vector is stepped,
    the one before it is copied back. Where the model is on the CPU, both tiers are the host's memory.

    ``parameters``        the parameters' shards are on the host, too: the device has only what is gathered. For stage 3
    ``delayed``           a step goes on while the next forward and backward pass compute, with parameters that are one
                          step older. Writes to ``data`` of a parameter, which leave no trace, are lost; use
                          ``whole_parameters(write=True)``
    ``bytes_per_second``  of the link between the tiers, where there is no device (see ``Link``)
    ``memory_bytes``      what the host's tier of this rank may take; by default the machine's free memory, shared by
                          the ranks there

    Raises MemoryError, on every rank and before training, if masters, states and gradients need more. With
    ``mixed_precision`` and several backward passes a step, gradients add up in the masters' type, in memory of their
    own that is not counted.
    """

    def __init__(self, *, parameters: bool = False, delayed: bool = False, bytes_per_second: float | None = None,
                 memory_bytes: float | None = None):  # fmt: skip
        if memory_bytes is not None and not memory_bytes > 0:
            raise ValueError(f"memory_bytes is {memory_bytes!r}; give a positive number of bytes")
        self.parameters_elsewhere, self.delayed, self.memory_bytes = parameters, delayed, memory_bytes
        self.link = Link(bytes_per_second)
        self._device = torch.device("cpu")  # of the parameters
        self._queue: Queue | None = None  # copies to the device, beside the steps
        self._copying: dict[ShardedVector, Done] = {}
        self._gradients: dict[ShardedVector, deque[torch.Tensor]] = {}  # memory for them
        self._stepping: Done | None = None  # a delayed step that goes on
        self._steps = Thread()

    def check(self, model: Any, elements: int) -> None:
        if self._queue is not None:
            raise ValueError(f"this {type(self).__name__} belongs to another model already; make one for each model")
        if self.parameters_elsewhere and "parameters" in model.keeps_whole:
            raise ValueError(
                f"{type(self).__name__}(parameters=True) keeps parameters off the device until they are gathered, as "
                f"only ZeroStage3 does; {type(model).__name__} has them whole"
            )
        if self.delayed and model.optimizer_of.func is Muon:
            raise ValueError(
                "a delayed step goes on beside the backward pass, and Muon's ranks talk in it; not delayed"
            )
        first = next(iter(model.trained.values()))
        self._device = first.device
        self._queue = Stream(self._device) if self._device.type == "cuda" else Thread()
        need = elements * self._bytes_per_element(model, first)
        refuse_if_too_large(need, self.memory_bytes, model.group)

    def _bytes_per_element(self, model: Any, like: torch.Tensor) -> float:
        """Of host memory: the gradient as it travels, the master and the states; the parameter, too, or not."""
        wire = (model.mixed_precision or like.dtype).itemsize
        own_parameter = self.parameters_elsewhere and model.mixed_precision is not None
        return wire + like.dtype.itemsize * (1 + max(map(len, model.sharded_keys.values()))) + wire * own_parameter

    def _new(self, like: torch.Tensor) -> torch.Tensor:
        """Host memory for a copy; a GPU copies beside its work only from and to pinned memory."""
        return torch.empty(like.shape, dtype=like.dtype, device="cpu", pin_memory=self._device.type == "cuda")

    def _copy_of(self, tensor: torch.Tensor) -> torch.Tensor:
        return self._new(tensor).copy_(tensor)

    def shard(self, part: torch.Tensor, own: bool) -> torch.Tensor:
        return self._copy_of(part) if self.parameters_elsewhere else super().shard(part, own)

    def master(self, original: torch.Tensor, shard: torch.Tensor) -> torch.nn.Parameter:
        is_shard = self.parameters_elsewhere and shard.dtype == original.dtype
        return torch.nn.Parameter(shard if is_shard else self._copy_of(original))

    def accumulate(self, vector: ShardedVector, reduced: torch.Tensor) -> torch.Tensor:
        earlier = vector.reduced
        if earlier is None:
            into = self._gradient_memory(vector, reduced)
        else:
            reduced = reduced.to(vector.master.dtype)
            into = earlier if earlier.dtype == reduced.dtype else self._new(reduced)
            reduced = reduced + earlier.to(reduced.device, non_blocking=True)
        self.link.to_host(into, reduced)
        return into

    def _gradient_memory(self, vector: ShardedVector, like: torch.Tensor) -> torch.Tensor:
        """The same memory in each pass; with ``delayed`` one of two, since the other may still be stepped with."""
        turns = self._gradients.setdefault(vector, deque())
        if len(turns) < 1 + self.delayed:
            turns.append(self._new(like))
        turns.rotate()
        return turns[0]

    def load_shard(self, vector: ShardedVector, into: torch.Tensor) -> None:
        if self.parameters_elsewhere:
            self.link.to_device(into, vector.shard)
        else:
            super().load_shard(vector, into)

    def sizes(self, vector: ShardedVector, states: Iterable[torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
        yield "host" if self.parameters_elsewhere else "device", vector.shard
        for tensor in (vector.master, *self._gradients.get(vector, ()), *states):
            yield "host", tensor

    def wait(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()

    def step(self, optimizer: torch.optim.Optimizer, vectors: list[ShardedVector]) -> None:
        self.wait()
        gradients = [vector.reduced for vector in vectors]
        if not self.delayed:
            self._step_each(optimizer, vectors, gradients, then=self._start_copying)
            return
        self.finish()
        for vector in vectors:
            self._to_device(vector)  # what the step before made
        self.wait()
        optimizer.step()  # there are no gradients: it only lets schedulers know of a step
        self._stepping = self._steps.submit(partial(self._step_each, _as_it_is_now(optimizer), vectors, gradients))

    def _step_each(
        self,
        optimizer: torch.optim.Optimizer,
        vectors: list[ShardedVector],
        gradients: list[torch.Tensor | None],
        then: Callable[[ShardedVector], object] = lambda vector: None,
    ) -> None:
        """Step vector after vector, and call ``then`` for each that was stepped."""
        for vector, gradient in zip(vectors, gradients, strict=True):
            step_one(optimizer, vector, gradient)
            then(vector)

    def finish(self) -> None:
        """Wait for a delayed step."""
        if self._stepping is not None:
            stepping, self._stepping = self._stepping, None
            stepping.result()

    def update(self, vectors: list[ShardedVector], of_vector: Callable[[ShardedVector], None]) -> None:
        self.finish()
        super().update(vectors, of_vector)

    @contextmanager
    def loaded(self, vector: ShardedVector) -> Iterator[None]:
        self.finish()
        yield

    def heed(self, vector: ShardedVector) -> None:
        if not self.delayed:  # then the master is one step ahead
            super().heed(vector)

    def _start_copying(self, vector: ShardedVector) -> None:
        assert self._queue is not None
        self._copying[vector] = self._queue.submit(partial(self._to_device, vector))

    def _to_device(self, vector: ShardedVector) -> None:
        master = vector.master.detach()
        if vector.shard.data_ptr() != master.data_ptr():
            self.link.to_device(vector.shard, master)

    def write_back(self, vector: ShardedVector) -> None:
        if self._stepping is not None:
            return  # what the step before made is there; this one goes on
        copying = self._copying.pop(vector, None)
        if copying is None:
            self._to_device(vector)
        else:
            copying.result()


class Kept(Device):
    """Of shards that nobody steps: where a model with this ``home`` has its parameters' shards."""

    def __init__(self, home: Device):
        self._host = home if isinstance(home, Host) and home.parameters_elsewhere else None

    def shard(self, part: torch.Tensor, own: bool) -> torch.Tensor:
        return part.clone() if self._host is None else Host.shard(self._host, part, own)

    def master(self, original: torch.Tensor, shard: torch.Tensor) -> torch.nn.Parameter:
        given = shard if shard.dtype == original.dtype else self.shard(original, own=True)
        return torch.nn.Parameter(given, requires_grad=False)

    def load_shard(self, vector: ShardedVector, into: torch.Tensor) -> None:
        if self._host is None:
            super().load_shard(vector, into)
        else:
            self._host.link.to_device(into, vector.shard)

    def sizes(self, vector: ShardedVector, states: Iterable[torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
        for _, tensor in super().sizes(vector, states):
            yield "device" if self._host is None else "host", tensor


@torch.no_grad()
def step_one(optimizer: torch.optim.Optimizer, vector: ShardedVector, gradient: torch.Tensor | None) -> None:
    """Step the master of one vector alone."""
    if gradient is not None:
        vector.master.grad = gradient.to(vector.master.dtype)
        optimizer.step()
        vector.master.grad = None


def _as_it_is_now(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """The optimizer with the options of now, whatever schedulers do to it meanwhile. States are the same."""
    now = copy.copy(optimizer)
    now.param_groups = [dict(group) for group in optimizer.param_groups]
    without_model(now)
    return now


def refuse_if_too_large(need: float, limit: float | None, group: dist.ProcessGroup) -> None:
    """Raise MemoryError on every rank if one ``need``s more bytes than its ``limit``, or than its machine has free."""
    if limit is None:
        limit = psutil.virtual_memory().available / int(os.environ.get("LOCAL_WORLD_SIZE", group.size()))
    everyone: list[tuple[float, float]] = [(0, 0)] * group.size()
    dist.all_gather_object(everyone, (need, limit), group=group)
    for rank, (needs, has) in enumerate(everyone):
        if needs > has:
            raise MemoryError(
                f"rank {rank} needs {needs / 1e9:.3g} GB of host memory for masters, optimizer states and gradients, "
                f"and may take {has / 1e9:.3g} GB; take more ranks or machines, or zero.File, which needs less"
            )
