"""signSGD with majority vote: one bit of each value goes up, and one comes down.

Bernstein et al., "signSGD with Majority Vote is Communication Efficient and Fault Tolerant" (2019). With error
feedback the votes have weights: Karimireddy et al., "Error Feedback Fixes SignSGD" (2019); both ways, Zheng et al.,
"Communication-Efficient Distributed Blockwise Momentum SGD with Error-Feedback" (2019).
"""

import torch
import torch.distributed as dist

from ringzero.collectives.formats import encoded, floats, to_all, to_owners
from ringzero.unsynced.compression.compressor import Compressor, Exchange
from ringzero.unsynced.compression.signs import WEIGHT, Signs, chunks_of_bytes, mean_by_signs


class SignMajority(Compressor):
    """The result is 1 where most ranks have a positive gradient, and -1 where most have a negative one.

    So the learning rate is the length of a step in each coordinate. A bit cannot say zero: zeros and ties count as
    positive in even steps and as negative in odd ones, so a parameter that never has a gradient moves to and fro by one
    step. A rank whose chunk of gradients is all zeros does not vote, such as one that is out of data.

    With ``error_feedback`` the votes of a chunk are weighted by its mean magnitude, and so is the verdict. The result
    is then about the mean, as with other compressors, and takes their learning rates. The rank that owns a chunk keeps
    what the verdict loses.

    Two exchanges of 1 bit a value, with 4 bytes for a chunk's weight: see ``costs.compression.sign_bytes``. Chunks with
    an infinite number or a NaN are NaN everywhere.
    """

    def __init__(self, error_feedback: bool = False, group: dist.ProcessGroup | None = None):
        super().__init__(error_feedback, group)

    def mean(self, values: torch.Tensor, exchange: Exchange) -> torch.Tensor:
        group, zeros_are_positive = exchange.group, exchange.step % 2 == 0
        if not self.error_feedback:
            return majority(values, group, zeros_are_positive)
        mine = chunks_of_bytes(values, group.size())[group.rank()]
        owed = torch.zeros_like(mine)
        mean = mean_by_signs(values, owed, group, exchange.ranks, zeros_are_positive)
        mine += exchange.ranks * owed  # the next mean divides it by ranks again
        return mean


def majority(values: torch.Tensor, group: dist.ProcessGroup, zeros_are_positive: bool) -> torch.Tensor:
    """1 or -1 for each of ``values``, as most ranks have it; NaN in a chunk where a rank has a number not finite."""
    votes, result = Signs(zeros_are_positive, _has_a_vote), torch.empty_like(values)
    rows = to_owners(encoded(votes, chunks_of_bytes(values, group.size())), group)
    voters = floats(rows[:, :WEIGHT].reshape(-1)).sum()
    verdicts = chunks_of_bytes(result, group.size())
    mine = verdicts[group.rank()]
    mine.copy_(torch.stack([votes.decode(row, mine.numel()) for row in rows]).sum(0))
    to_all(Signs(zeros_are_positive, lambda _: voters.clamp(max=1)), verdicts, group)
    return result


def _has_a_vote(values: torch.Tensor) -> torch.Tensor:
    """1; 0 for zeros alone, and NaN if one of the values is not finite."""
    largest = values.abs().amax() if values.numel() else values.new_zeros(())
    return (largest != 0) + (largest - largest)
