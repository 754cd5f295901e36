"""Where masters live: the shards that the optimizer steps, with the optimizer's states.

Parameters that are computed with may be of a lower precision, or in another memory, than their masters. A home makes
the masters, keeps reduced gradients for them, steps them, and brings what was stepped back to the device.

| home     | masters and states            | the device has                                                     |
|----------|-------------------------------|--------------------------------------------------------------------|
| `Device` | on the device                 | all                                                                |
| `Host`   | in the host's memory          | what is computed with; with ``parameters`` nothing else            |
| `File`   | in files (``zero/file.py``)   | as with `Host`                                                     |
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ringzero.zero.vector import ShardedVector


class Device:
    """Masters are on the device of the parameters. Where the type is the same too, the master *is* the shard."""

    delayed = False  # whether a step goes on when ``step`` has returned
    parameters_elsewhere = False  # whether shards of parameters, too, are not on the device

    def check(self, model: Any, elements: int) -> None:
        """Called once, before any vector: ``model`` is about to have shards of ``elements`` here. May refuse it."""

    def attach(self, vectors: list[ShardedVector], optimizer: torch.optim.Optimizer) -> None:
        """Called when ``optimizer`` has the masters of ``vectors``, and again with all vectors when some were added."""

    def check_takes_more(self) -> None:
        """Raise ValueError unless vectors may be added."""

    def shard(self, part: torch.Tensor, own: bool) -> torch.Tensor:
        """Where this rank's ``part`` of a vector's parameters is kept, with ``own`` memory or not."""
        return part.clone() if own else part

    def master(self, original: torch.Tensor, shard: torch.Tensor) -> torch.nn.Parameter:
        """What the optimizer steps: of ``original``, the shard before it got the type of the module."""
        return torch.nn.Parameter(shard if shard.dtype == original.dtype else original.clone())

    def accumulate(self, vector: ShardedVector, reduced: torch.Tensor) -> torch.Tensor:
        """Add a shard that was ``reduced`` to the vector's earlier one, if any. Returns where the sum is."""
        return reduced if vector.reduced is None else vector.reduced.to(vector.master.dtype).add_(reduced)

    def load_shard(self, vector: ShardedVector, into: torch.Tensor) -> None:
        """Copy this rank's part of the parameters ``into`` their place on the device."""
        into.copy_(vector.shard)

    def wait(self) -> None:
        """Wait until gradients that were kept can be read."""

    def step(self, optimizer: torch.optim.Optimizer, vectors: list[ShardedVector]) -> None:
        """Step every master that has a reduced gradient."""
        for vector in vectors:
            vector.master.grad = None if vector.reduced is None else vector.reduced.to(vector.master.dtype)
        optimizer.step()
        for vector in vectors:
            vector.master.grad = None

    def update(self, vectors: list[ShardedVector], of_vector: Callable[[ShardedVector], None]) -> None:
        """Call ``of_vector`` for each vector; it may write to the master and to the optimizer's states."""
        for vector in vectors:
            of_vector(vector)

    def heed(self, vector: ShardedVector) -> None:
        """Have the master say what the parameters say where the program wrote to them. It may ask on one rank alone."""
        vector.take_over_whole(vector.master.detach().to(vector.whole.dtype))

    @contextmanager
    def loaded(self, vector: ShardedVector) -> Iterator[None]:
        """Inside, the master and the optimizer's states can be read."""
        yield

    def sizes(self, vector: ShardedVector, states: Iterable[torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
        """The tensors of a shard, and the tier that each is in: ``states`` are the optimizer's."""
        for tensor in (vector.shard, vector.master, vector.reduced, *states):
            if tensor is not None:
                yield "device", tensor

    def write_back(self, vector: ShardedVector) -> None:
        """Have the shard say what the master says."""
        if vector.shard.dtype != vector.master.dtype:
            vector.shard.copy_(vector.master)
