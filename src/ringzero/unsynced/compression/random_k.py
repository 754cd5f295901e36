"""Random-k: values at random indices travel. All ranks draw the same indices, so values can be summed on their way.

Stich et al., "Sparsified SGD with Memory" (2018). To draw k different indices takes a shuffle of all of them, which
costs more than to send a few of the values. Here the vector is cut into k cells, as equal as can be, and one index is
drawn in each: these differ too, and each value is as likely as the others.
"""

import torch
import torch.distributed as dist

from ringzero.collectives import all_reduce
from ringzero.costs.compression import kept
from ringzero.unsynced.compression.compressor import Compressor, Exchange


class RandomK(Compressor):
    """A ``ratio`` of the values is sent, chosen anew in each step.

    A ring all-reduce of 4 bytes a value: see ``costs.compression.random_k_bytes``. Without ``error_feedback`` each
    value sent is divided by its probability, so that the result has the mean of the gradients as its expectation. One
    gradient that is infinite or NaN makes all values sent NaN. Raises ValueError for a ``ratio`` outside (0, 1].
    """

    def __init__(self, ratio: float, error_feedback: bool = True, seed: int = 0,
                 group: dist.ProcessGroup | None = None):  # fmt: skip
        kept(1, ratio)  # raises ValueError
        self.ratio, self.seed = ratio, seed
        super().__init__(error_feedback, group)

    def mean(self, values: torch.Tensor, exchange: Exchange) -> torch.Tensor:
        k = kept(values.numel(), self.ratio)
        indices, widths = one_in_each_cell(values.numel(), k, exchange.random(values.device, self.seed))
        sent = values[indices]
        sent += torch.where(values.isfinite().all(), 0.0, torch.nan)  # what is not chosen may be what is not finite
        if not self.error_feedback:
            sent *= widths
        values.index_fill_(0, indices, 0)
        all_reduce(sent, group=exchange.group)
        return torch.zeros_like(values).index_copy_(0, indices, sent / exchange.ranks)


def one_in_each_cell(numel: int, k: int, random: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """``k`` indices below ``numel``, one in each of ``k`` cells that follow each other, and the widths of the cells."""
    bounds = torch.arange(k + 1, device=random.device) * numel // k
    starts, widths = bounds[:-1], bounds.diff()
    places = torch.rand(k, generator=random, dtype=torch.float64, device=random.device)
    return starts + (places * widths).long(), widths
