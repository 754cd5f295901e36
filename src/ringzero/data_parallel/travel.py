"""How gradients are summed over the ranks: a ``Start`` begins it for a full vector, and returns what waits for it."""

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import torch
import torch.distributed as dist

from ringzero.collectives import all_reduce
from ringzero.data_parallel.executor import queue_of
from ringzero.data_parallel.in_order import InOrder, Wait
from ringzero.data_parallel.vector import Vector

Start = Callable[[Vector], Wait]


def by_backend(group: dist.ProcessGroup) -> Start:
    """By the all-reduce of the group's backend, which needs no executor: it works beside the caller by itself."""
    return lambda vector: dist.all_reduce(vector.gradient, group=group, async_op=True).wait


def by_ringzero(algorithm: str, group: dist.ProcessGroup) -> Start:
    """By the all-reduce of ringzero that has the name ``algorithm``."""

    def start(vector: Vector) -> Wait:
        gradient = vector.gradient
        assert gradient is not None  # it is full
        job = partial(all_reduce, gradient, algorithm=algorithm, group=group)
        return queue_of(group, gradient.device).submit(job).result

    return start


class Bucket:
    """What a communication hook is given of a vector of gradients: the methods of torch's ``GradBucket``."""

    def __init__(self, vector: Vector, index: int, is_last: bool):
        self._vector, self._index, self._is_last = vector, index, is_last

    def index(self) -> int:
        """Its place among those that leave in a backward pass."""
        return self._index

    def is_last(self) -> bool:
        return self._is_last

    def buffer(self) -> torch.Tensor:
        """All gradients, 1-D, of this rank alone and not divided."""
        assert self._vector.gradient is not None  # it is full
        return self._vector.gradient

    def set_buffer(self, buffer: torch.Tensor) -> None:
        """Have ``buffer``, of the same size, take the place of what is there."""
        self.buffer().copy_(buffer)

    def gradients(self) -> list[torch.Tensor]:
        """Views of the buffer, in the parameters' shapes."""
        return list(self._vector.views.values())

    def parameters(self) -> list[torch.nn.Parameter]:
        return list(self._vector.parameters.values())

    def sparse(self) -> list[str]:
        """Names of the parameters whose gradient was sparse before it came here."""
        return [name for name, parameter in self._vector.parameters.items() if parameter in self._vector.sparse]


CommunicationHook = Callable[[Any, Any], torch.futures.Future]


def by_hook(hook: CommunicationHook, state: object, in_order: InOrder) -> Start:
    """As ``hook(state, bucket)`` has it, which returns a future of the mean over the ranks."""

    def start(vector: Vector) -> Wait:
        bucket = _bucket_of(vector, in_order)
        mean = hook(state, bucket)
        if not isinstance(mean, torch._C.Future):  # of which torch.futures.Future is one kind
            raise TypeError(f"the communication hook returned a {type(mean).__name__}; it must return a future")

        def wait() -> None:
            given = mean.wait()
            tensor = given[0] if isinstance(given, list | tuple) else given
            if tensor.data_ptr() != bucket.buffer().data_ptr():
                bucket.buffer().copy_(tensor.view_as(bucket.buffer()))

        return wait

    return start


class Compressor(Protocol):
    """A way to the mean of gradients with fewer bytes, such as those of ``ringzero.unsynced.compression``."""

    error_feedback: bool  # whether what a rank does not send is added to its later gradients

    def start(self, bucket: Bucket, group: dist.ProcessGroup, ranks: int) -> Wait:
        """Begin to replace the gradients, which are not divided yet, by their sum over the group divided by ``ranks``.

        Returns a function that waits for it.
        """


def by_compressor(
    compressor: Compressor, group: dist.ProcessGroup, ranks: Callable[[], int], in_order: InOrder
) -> Start:
    """As ``compressor`` has it. ``ranks()`` is how many have data."""
    return lambda vector: compressor.start(_bucket_of(vector, in_order), group, ranks())


def _bucket_of(vector: Vector, in_order: InOrder) -> Bucket:
    vectors = in_order.vectors()
    return Bucket(vector, vectors.index(vector), vector is vectors[-1])
