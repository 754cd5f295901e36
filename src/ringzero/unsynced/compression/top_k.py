"""Top-k: only the largest gradients travel, each with its index.

Aji and Heafield, "Sparse Communication for Distributed Gradient Descent" (2017); Stich et al., "Sparsified SGD with
Memory" (2018). Ranks choose different indices, so the messages cannot be summed on their way: every rank gets all of
them, and adds them up.
"""

import torch
import torch.distributed as dist

from ringzero.collectives.formats import all_rows
from ringzero.costs.compression import kept
from ringzero.unsynced.compression.compressor import Compressor, Exchange


class TopK(Compressor):
    """Each rank sends the ``ratio`` of its values that are largest in magnitude. NaN and infinity are the largest.

    An all-gather of 8 bytes a value, an int32 index and fp32: see ``costs.compression.top_k_bytes``. Raises ValueError
    for a ``ratio`` outside (0, 1].
    """

    def __init__(self, ratio: float, error_feedback: bool = True, group: dist.ProcessGroup | None = None):
        kept(1, ratio)  # raises ValueError
        self.ratio = ratio
        super().__init__(error_feedback, group)

    def mean(self, values: torch.Tensor, exchange: Exchange) -> torch.Tensor:
        k = kept(values.numel(), self.ratio)
        indices = values.abs().topk(k, sorted=False).indices
        message = torch.cat([values[indices].view(torch.int32), indices.int()])
        values.index_fill_(0, indices, 0)
        everyone = all_rows(message, exchange.group)
        numbers = everyone[:, :-k].clone(memory_format=torch.contiguous_format).view(values.dtype)
        total = torch.zeros_like(values)
        for some, at in zip(numbers, everyone[:, -k:], strict=True):
            total.index_add_(0, at, some)
        return total / exchange.ranks
