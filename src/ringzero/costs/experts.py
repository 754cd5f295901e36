"""Will communication hide where layers are mixtures of experts? As ``page.overlap`` asks it of dense layers.

A token visits ``active_experts`` of ``experts``, all equally busy; ``ffn`` is the width of one of them. Arguments,
units and errors are those of ``page.overlap``. "How to Scale Your Model" (Austin et al. 2025).
"""

from ringzero.costs.page.inputs import positive
from ringzero.costs.page.overlap import matrices, min_tokens_for_data_parallel


def moe_data_parallel_ratio(
    peak_flops: float,
    bandwidth: float,
    tokens: float,
    experts: int,
    active_experts: int,
    world_size: int,
    bytes_per_element: float = 2,
) -> float:
    """All-reduce of all experts' gradients over the backward pass of those a token visits: E/k times the dense ratio.

    For the experts alone, replicated on every rank. ValueError if a token visits more experts than there are.
    """
    positive(tokens=tokens)
    least = min_tokens_for_moe_data_parallel(
        peak_flops, bandwidth, experts, active_experts, world_size, bytes_per_element
    )
    return least / tokens


def min_tokens_for_moe_data_parallel(
    peak_flops: float,
    bandwidth: float,
    experts: int,
    active_experts: int,
    world_size: int | None = None,
    bytes_per_element: float = 2,
) -> float:
    """Tokens a GPU needs in a micro-batch so that the gradients of all experts hide. None: very many ranks."""
    positive(experts=experts, active_experts=active_experts)
    if active_experts > experts:
        raise ValueError(f"active_experts is {active_experts}; a token visits at most all experts, {experts}")
    dense = min_tokens_for_data_parallel(peak_flops, bandwidth, world_size, bytes_per_element)
    return experts / active_experts * dense


def expert_parallel_ratio(
    peak_flops: float,
    bandwidth: float,
    ffn: float,
    expert_parallel: int,
    gated: bool = False,
    bytes_per_element: float = 2,
) -> float:
    """All-to-alls of tokens to their experts and back over the experts' products: b (Z-1) F / (m Z ffn B).

    Over Z ranks, each token is sent to each of its k experts and back, 2b k h (Z-1)/Z bytes, against 2m k h ffn FLOP:
    experts, tokens and hidden size cancel.
    """
    positive(ffn=ffn)
    return min_ffn_for_expert_parallel(peak_flops, bandwidth, expert_parallel, gated, bytes_per_element) / ffn


def min_ffn_for_expert_parallel(
    peak_flops: float,
    bandwidth: float,
    expert_parallel: int | None = None,
    gated: bool = False,
    bytes_per_element: float = 2,
) -> float:
    """The width of an expert from which on the all-to-alls fit behind the experts' products. None: very many ranks."""
    a_product = min_tokens_for_data_parallel(peak_flops, bandwidth, expert_parallel, bytes_per_element)
    return 2 / matrices(gated) * a_product
