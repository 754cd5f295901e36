"""How sharded vectors travel: gradients are summed into shards, and parameters are gathered from shards."""

import torch
import torch.distributed as dist

from ringzero.collectives import all_gather, reduce_scatter
from ringzero.data_parallel.executor import Job, queue_of
from ringzero.data_parallel.in_order import Wait


class Ring:
    """By ringzero's ring: for a vector of S bytes a rank sends S (N-1)/N, to its neighbour alone.

    Rank r of ``group`` owns chunk r of a vector (``chunk_bounds``).
    """

    def __init__(self, group: dist.ProcessGroup):
        self.group = group

    def reduce(self, gradient: torch.Tensor) -> torch.Tensor:
        """Sum over the ranks. Returns this rank's shard of the sum, a view of ``gradient``; the rest is overwritten."""
        return reduce_scatter(gradient, group=self.group)

    def gather(self, whole: torch.Tensor) -> None:
        """Fill ``whole``, in which this rank's shard is in its place, with the other ranks' shards."""
        all_gather(whole, group=self.group)

    def start(self, job: Job, device: torch.device, after: Job | None = None) -> Wait:
        """Run ``job``, which may ``reduce`` and ``gather``, beside the computation, after those started earlier.

        ``after`` follows, once the memory that the job used may be freed.
        """
        return queue_of(self.group, device).submit(job, after).result
