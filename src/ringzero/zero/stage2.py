"""ZeRO stage 2: stage 1, and each rank keeps its shard of the gradients alone.

When a flat's gradients are all there, they are reduced to the ranks' shards and freed while the backward pass goes on.
It may not run ahead of that, or they would be whole after all: on a fast GPU with a slow link, at the end all at once.
"""

from contextlib import nullcontext

from ringzero.zero.stage1 import ZeroStage1

IN_FLIGHT = 1  # flats on their way to be reduced while the next one fills, as in FSDP2


class ZeroStage2(ZeroStage1):
    """As ``ZeroStage1``. There is no whole gradient to add to, so ``no_sync`` changes nothing: each backward pass is
    reduced, and shards add up.
    """

    no_sync = nullcontext

    def _reduce_full_ones(self):
        super()._reduce_full_ones()
        for reduction in self._reducing[:-IN_FLIGHT]:
            reduction.result()

    def _reduce(self, flat):
        super()._reduce(flat)
        flat.free_gradient()
