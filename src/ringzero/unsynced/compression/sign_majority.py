"""signSGD with majority vote: one bit of each value goes up, and one comes down.

Bernstein et al., "signSGD with Majority Vote is Communication Efficient and Fault Tolerant" (2019). With error
feedback the votes have weights: Karimireddy et al., "Error Feedback Fixes SignSGD" (2019); both ways, Zheng et al.,
"Communication-Efficient Distributed Blockwise Momentum SGD with Error-Feedback" (2019).
"""

import torch
import torch.distributed as dist

from ringzero.unsynced.compression.compressor import Compressor, Exchange
from ringzero.unsynced.compression.signs import Chunks, decode, encode, mean_by_signs


class SignMajority(Compressor):
    """The result is 1 where most ranks have a positive gradient, and -1 where most have a negative one.

    So the learning rate is the length of a step in each coordinate. A bit has no zero: zeros and ties are positive in
    even steps and negative in odd ones, and what never has a gradient stays where it is within one step. A rank whose
    chunk of gradients is all zeros, as one that is out of data, does not vote.

    With ``error_feedback`` the votes of a chunk have the weight of its mean magnitude, and so has the verdict: the
    result is about the mean, as with other compressors, and takes their learning rates. What a verdict loses is kept
    by the rank that owns the chunk.

    Two exchanges of 1 bit a value, with 4 bytes for a chunk's weight: see ``costs.compression.sign_bytes``. Chunks with
    an infinite number or a NaN are NaN everywhere.
    """

    def __init__(self, error_feedback: bool = False, group: dist.ProcessGroup | None = None):
        super().__init__(error_feedback, group)

    def mean(self, values: torch.Tensor, exchange: Exchange) -> torch.Tensor:
        chunks, zeros_are_positive = Chunks(values.numel(), exchange.group), exchange.step % 2 == 0
        if not self.error_feedback:
            return majority(values, chunks, zeros_are_positive)
        owed = values.new_zeros(chunks.width)
        mean = mean_by_signs(values, owed, chunks, exchange.ranks, zeros_are_positive)
        mine = values[chunks.mine]
        mine += exchange.ranks * owed[: mine.numel()]  # times ranks, for it will be divided by them in the next mean
        return mean


def majority(values: torch.Tensor, chunks: Chunks, zeros_are_positive: bool) -> torch.Tensor:
    """1 or -1 for each of ``values``, as most ranks have it; NaN in a chunk where a rank has a number not finite."""
    rows = chunks.cut(values)
    largest = rows.abs().amax(1)
    weights = (largest != 0) + (largest - largest)  # 1; 0 for zeros alone, and NaN for what is not finite
    votes = decode(chunks.to_owners(encode(rows, weights, zeros_are_positive)))
    voters = votes[:, 0].abs().sum(0, keepdim=True)
    verdict = encode(votes.sum(0, keepdim=True), voters.clamp(max=1), zeros_are_positive)
    return decode(chunks.to_all(verdict[0])).view(-1)[: values.numel()].to(values.dtype)
