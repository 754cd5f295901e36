"""Will communication hide where ZeRO-3 and tensor parallelism share the GPUs? As ``page.overlap`` asks it of each.

X ranks of ZeRO-3 by T of tensor parallelism. Arguments, units and errors are those of ``page.overlap``; here the links
of ZeRO-3 carry ``zero_bandwidth`` and those of tensor parallelism ``tensor_bandwidth`` bytes a second. With
``concurrent`` the two are sent at once, on links of their own, and the longer counts; else one waits for the other.
"How to Scale Your Model" (Austin et al. 2025).
"""

from math import sqrt

from ringzero.costs.page import overlap
from ringzero.costs.page.inputs import positive, ranks


def mixed_ratio(
    peak_flops: float,
    zero_bandwidth: float,
    tensor_bandwidth: float,
    tokens: float,
    ffn: float,
    zero_ranks: int,
    tensor_parallel: int,
    gated: bool = False,
    bytes_per_element: float = 2,
    concurrent: bool = False,
) -> float:
    """Communication over the forward pass of an MLP.

    Each shard gathers 1/T of the parameters, for the tokens of T ranks: ``zero3_ratio`` with T times the tokens. The
    activations' collectives add ``tensor_parallel_mlp_ratio``.
    """
    positive(tokens=tokens)
    ways = ranks(tensor_parallel)
    parameters = overlap.zero3_ratio(peak_flops, zero_bandwidth, tokens * ways, zero_ranks, bytes_per_element)
    activations = overlap.tensor_parallel_mlp_ratio(peak_flops, tensor_bandwidth, ffn, ways, gated, bytes_per_element)
    return max(parameters, activations) if concurrent else parameters + activations


def best_zero_degree(
    batch_tokens: float,
    ffn: float,
    gpus: int,
    zero_bandwidth: float,
    tensor_bandwidth: float,
    gated: bool = False,
) -> float:
    """Ranks of ZeRO-3 (a real number) that send least in all, when the other factor of ``gpus`` is tensor parallel.

    sqrt(2 batch N Bz / (m ffn Bt)), where both ratios of ``mixed_ratio`` are equal. For many ranks of either, so that
    (N-1)/N counts as 1. Where it is more than ``gpus``, ZeRO-3 alone sends least.

    >>> round(best_zero_degree(4.19e6, 28672, 8960, zero_bandwidth=2, tensor_bandwidth=1))  # 2 axes of a torus and 1
    1618
    """
    positive(batch_tokens=batch_tokens, ffn=ffn, gpus=gpus)
    positive(zero_bandwidth=zero_bandwidth, tensor_bandwidth=tensor_bandwidth)
    return sqrt(2 * batch_tokens * gpus * zero_bandwidth / (overlap.matrices(gated) * ffn * tensor_bandwidth))


def min_tokens_for_mixed(
    peak_flops: float,
    zero_bandwidth: float,
    tensor_bandwidth: float,
    ffn: float,
    gated: bool = False,
    bytes_per_element: float = 2,
    concurrent: bool = False,
) -> float:
    """Tokens a GPU needs in a micro-batch so that all communication hides, at the best degree of each.

    2 b^2 F^2 / (m ffn Bz Bt) for many ranks of either, a quarter of that if ``concurrent``: below what ZeRO-3 alone
    needs once the MLP is wide, because the square of F / B is over ``ffn``.
    """
    positive(peak_flops=peak_flops, ffn=ffn, bytes_per_element=bytes_per_element)
    positive(zero_bandwidth=zero_bandwidth, tensor_bandwidth=tensor_bandwidth)
    # ZeRO-3 needs tokens x T above the one, tensor parallelism T below ffn over the other.
    tokens_and_ways = overlap.min_tokens_for_zero3(peak_flops, zero_bandwidth, None, bytes_per_element)
    width_a_way = overlap.min_ffn_for_tensor_parallel_mlp(peak_flops, tensor_bandwidth, 2, gated, bytes_per_element)
    return (1 if concurrent else 4) * tokens_and_ways * width_a_way / ffn
