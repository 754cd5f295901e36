"""Where masters live: the shards that the optimizer steps, with the optimizer's states.

Parameters that are computed with may be of a lower precision, or in another memory, than their masters. A home makes
the masters, steps them, and brings what was stepped back to the shards.
"""

import torch

from ringzero.zero.vector import ShardedVector


class Device:
    """Masters are on the device of the parameters. Where the type is the same too, the master *is* the shard."""

    def master(self, original: torch.Tensor, shard: torch.Tensor) -> torch.nn.Parameter:
        """What the optimizer steps: of ``original``, the shard before it got the type of the module."""
        return torch.nn.Parameter(shard if shard.dtype == original.dtype else original.clone())

    def step(self, optimizer: torch.optim.Optimizer, vectors: list[ShardedVector]) -> None:
        """Step every master that has a reduced gradient."""
        for vector in vectors:
            vector.master.grad = None if vector.reduced is None else vector.reduced.to(vector.master.dtype)
        optimizer.step()
        for vector in vectors:
            vector.master.grad = None

    def bring_back(self, vector: ShardedVector) -> None:
        """Have the shard say what the master says."""
        if vector.shard.dtype != vector.master.dtype:
            vector.shard.copy_(vector.master)
