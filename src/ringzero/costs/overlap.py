"""Will communication hide behind computation? Seconds of one over seconds of the other: below 1 it can.

>>> round(data_parallel_ratio(peak_flops=989e12, bandwidth=450e9, tokens=4096, world_size=8), 2)
0.47
>>> round(min_tokens_for_data_parallel(peak_flops=989e12, bandwidth=450e9, world_size=8))
1923

Each split of training has its ratio, and the threshold where the ratio is 1: the tokens, width, layers or ranks from
which on, or up to which, communication hides.

data parallel, ZeRO-3, hybrid (HSDP), mixture of experts    tokens a GPU
tensor and expert parallel                                  the width of the products, or the number of ranks
ZeRO-3 with tensor parallel                                 tokens a GPU, at the best number of ranks for each
pipeline                                                    layers a stage

``peak_flops`` is in FLOP/s of one GPU; give what your programs reach of it for a realistic answer. ``bandwidth`` is in
bytes a second that one GPU sends while it receives as much: the bus bandwidth of a collective of the size at hand,
as nccl-tests print it or as ``effective_bandwidth`` has it from a fitted alpha and beta. The link's own rate
(``hardware.nvlink``) is more than any message reaches: H100s all-reduce at about 370 of 450 GB/s. ``tokens`` are those
of one GPU in one step. Latency is in the bandwidth or left out, and so are attention's scores and values: they
compute without parameters. ValueError for an argument that is not above 0.

The idea is that of the Ultra-Scale Playbook (Tazi et al. 2025, appendix), whose own formulas count elements where they
say bytes (``costs.playbook``); here every size is in bytes. Mixtures, small groups and ZeRO-3 with tensor parallelism
follow "How to Scale Your Model" (Austin et al. 2025).
"""

from math import sqrt

from ringzero.costs.inputs import positive, ranks


def effective_bandwidth(coefficients: tuple[float, float, float], size: float, alpha: float, beta: float) -> float:
    """Bytes a second that a rank sends in a collective on a buffer of ``size`` bytes: the ``bandwidth`` of this module.

    ``coefficients`` are the collective's in ``COEFFICIENTS``, ``alpha`` the seconds of a message, ``beta`` those of a
    byte. Small buffers reach less than 1 / beta, because every round costs an alpha.

    >>> round(effective_bandwidth((14, 1.75, 0.875), 25e6, alpha=5e-6, beta=1 / 450e9) / 1e9)  # 8 ranks, 25 MB
    262
    """
    messages, sent, _ = coefficients
    positive(size=size, beta=beta)
    if not alpha >= 0:
        raise ValueError(f"alpha is {alpha}; give 0 or more seconds")
    if not sent > 0:
        raise ValueError(f"coefficients are {tuple(coefficients)}; give those of a collective of 2 ranks or more")
    return sent * size / (messages * alpha + sent * size * beta)


# ---- data parallel: gradients, or layers' parameters


def data_parallel_ratio(
    peak_flops: float, bandwidth: float, tokens: float, world_size: int, bytes_per_element: float = 2
) -> float:
    """All-reduce of the gradients over the backward pass: b (N-1) F / (2 N tokens B).

    2b Psi (N-1)/N bytes against 4 Psi tokens FLOP: the model's size cancels. ``bytes_per_element`` is a gradient's.
    """
    positive(tokens=tokens)
    return min_tokens_for_data_parallel(peak_flops, bandwidth, world_size, bytes_per_element) / tokens


def min_tokens_for_data_parallel(
    peak_flops: float, bandwidth: float, world_size: int | None = None, bytes_per_element: float = 2
) -> float:
    """Tokens a GPU needs in a step so that the all-reduce fits behind the backward pass. None: very many ranks."""
    positive(peak_flops=peak_flops, bandwidth=bandwidth, bytes_per_element=bytes_per_element)
    others = 1.0 if world_size is None else (ranks(world_size) - 1) / world_size
    return bytes_per_element / 2 * others * peak_flops / bandwidth


def max_data_parallel_ranks(
    peak_flops: float, bandwidth: float, batch_tokens: float, bytes_per_element: float = 2
) -> float:
    """Ranks (a real number) up to which the all-reduce hides when a batch of ``batch_tokens`` is shared among them.

    Each rank adds to the sending and takes from the computing: b (N-1) F / (2 batch B) is 1 at this N.

    >>> int(max_data_parallel_ranks(0.4 * 989e12, 8 * 50e9, batch_tokens=4e6))  # H100s at 40 %, rings on eight cards
    4045
    """
    positive(peak_flops=peak_flops, bandwidth=bandwidth, batch_tokens=batch_tokens, bytes_per_element=bytes_per_element)
    return 1 + 2 * batch_tokens * bandwidth / (bytes_per_element * peak_flops)


def zero3_ratio(
    peak_flops: float, bandwidth: float, tokens: float, world_size: int, bytes_per_element: float = 2
) -> float:
    """All-gather of a layer's parameters over the forward pass of the layer before: b (N-1) F / (2 N tokens B).

    b p (N-1)/N bytes against 2 p tokens FLOP. In the backward pass an all-gather and a reduce-scatter stand against
    4 p tokens FLOP, which is the same ratio. Data parallelism has this ratio too, though only in its backward pass.
    """
    return data_parallel_ratio(peak_flops, bandwidth, tokens, world_size, bytes_per_element)


def min_tokens_for_zero3(
    peak_flops: float, bandwidth: float, world_size: int | None = None, bytes_per_element: float = 2
) -> float:
    """Tokens a GPU needs in a step so that the layers' parameters arrive in time. None: very many ranks."""
    return min_tokens_for_data_parallel(peak_flops, bandwidth, world_size, bytes_per_element)


def hybrid_ratio(
    peak_flops: float,
    inside_bandwidth: float,
    across_bandwidth: float,
    tokens: float,
    nodes: int,
    ranks_per_node: int,
    bytes_per_element: float = 2,
    concurrent: bool = False,
) -> float:
    """Communication over the backward pass of HSDP, where it has the most: sharded in a node, replicated across nodes.

    Inside a node of G ranks it is ZeRO-3's: two collectives of b p (G-1)/G bytes. Across P nodes each rank all-reduces
    the gradient of its shard, 2b p/G (P-1)/P bytes. Both stand against 4 p tokens FLOP. They use different links:
    ``concurrent`` says that both are sent at once, and the longer one counts; else one waits for the other. In the
    forward pass the ratio is ``zero3_ratio`` on ``ranks_per_node`` ranks.
    """
    positive(tokens=tokens)
    least = min_tokens_for_hybrid(
        peak_flops, inside_bandwidth, across_bandwidth, nodes, ranks_per_node, bytes_per_element, concurrent
    )
    return least / tokens


def min_tokens_for_hybrid(
    peak_flops: float,
    inside_bandwidth: float,
    across_bandwidth: float,
    nodes: int,
    ranks_per_node: int,
    bytes_per_element: float = 2,
    concurrent: bool = False,
) -> float:
    """Tokens a GPU needs in a step so that HSDP's communication hides. Arguments as for ``hybrid_ratio``.

    >>> link = {"peak_flops": 989e12, "inside_bandwidth": 450e9, "across_bandwidth": 50e9}
    >>> round(min_tokens_for_hybrid(nodes=16, ranks_per_node=8, **link))  # H100s, NVLink and InfiniBand NDR
    4241
    >>> round(min_tokens_for_zero3(989e12, 8 * 50e9, 128))  # ZeRO-3, whose rings use all eight cards of a node
    2453
    """
    inside = min_tokens_for_zero3(peak_flops, inside_bandwidth, ranks_per_node, bytes_per_element)
    across = min_tokens_for_data_parallel(peak_flops, across_bandwidth, nodes, bytes_per_element) / ranks_per_node
    return _together(inside, across, concurrent)


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
    """Tokens a GPU needs in a step so that the gradients of all experts hide. None: very many ranks."""
    positive(experts=experts, active_experts=active_experts)
    if active_experts > experts:
        raise ValueError(f"active_experts is {active_experts}; a token visits at most all experts, {experts}")
    dense = min_tokens_for_data_parallel(peak_flops, bandwidth, world_size, bytes_per_element)
    return experts / active_experts * dense


# ---- tensor and expert parallel: activations


def tensor_parallel_products(
    hidden: int, ffn: int, heads: int, kv_heads: int | None = None, gated: bool = False
) -> list[tuple[str, str, int]]:
    """The products of a layer that tensor parallelism cuts, as ``(name, collective, width)``: hidden x width matrices.

    The all-gather comes before its product, the reduce-scatter after. ``tensor_parallel_ratio`` with the width in
    place of ``hidden`` is the ratio of the two. With ``gated``, gate and up share one all-gather.

    >>> # Llama 3 70B on H100s over NVLink
    >>> for name, _, width in tensor_parallel_products(8192, 28672, heads=64, kv_heads=8, gated=True):
    ...     print(f"{name}: {tensor_parallel_ratio(989e12, 450e9, width, tensor_parallel=8):.2f}")
    Q, K, V: 1.50
    projection: 1.88
    gate and up: 0.27
    down: 0.54
    """
    kv_heads = heads if kv_heads is None else kv_heads
    positive(hidden=hidden, ffn=ffn, heads=heads, kv_heads=kv_heads)
    if hidden % heads:
        raise ValueError(f"hidden is {hidden}; it must be a multiple of heads, {heads}")
    return [
        ("Q, K, V", "all_gather", hidden + 2 * kv_heads * (hidden // heads)),
        ("projection", "reduce_scatter", hidden),
        ("gate and up" if gated else "up", "all_gather", 2 * ffn if gated else ffn),
        ("down", "reduce_scatter", ffn),
    ]


def tensor_parallel_ratio(
    peak_flops: float, bandwidth: float, hidden: float, tensor_parallel: int, bytes_per_element: float = 2
) -> float:
    """All-gather of the activations over the next product, with an h x h matrix: b (T-1) F / (2 h B).

    b tokens h (T-1)/T bytes against 2 tokens h^2 / T FLOP: tokens cancel, so a larger batch does not help. For an h x w
    matrix give w: a product with more columns computes longer for the same activations.
    """
    positive(hidden=hidden)
    return min_hidden_for_tensor_parallel(peak_flops, bandwidth, tensor_parallel, bytes_per_element) / hidden


def min_hidden_for_tensor_parallel(
    peak_flops: float, bandwidth: float, tensor_parallel: int, bytes_per_element: float = 2
) -> float:
    """The hidden size from which on the all-gather fits behind the next product."""
    positive(peak_flops=peak_flops, bandwidth=bandwidth, bytes_per_element=bytes_per_element)
    return bytes_per_element / 2 * (ranks(tensor_parallel) - 1) * peak_flops / bandwidth


def tensor_parallel_attention_ratio(
    peak_flops: float,
    bandwidth: float,
    hidden: float,
    tensor_parallel: int,
    kv_share: float = 1,
    bytes_per_element: float = 2,
) -> float:
    """All-gather and reduce-scatter around attention over Q, K, V and projection: b (T-1) F / (2 (1 + g) h B).

    ``kv_share`` g is key and value heads over query heads, 1 without grouped-query attention. The backward pass sends
    as much (half as much again if the all-gathered activations were not kept) and computes twice as long.
    """
    positive(hidden=hidden)
    least = min_hidden_for_tensor_parallel_attention(
        peak_flops, bandwidth, tensor_parallel, kv_share, bytes_per_element
    )
    return least / hidden


def min_hidden_for_tensor_parallel_attention(
    peak_flops: float, bandwidth: float, tensor_parallel: int, kv_share: float = 1, bytes_per_element: float = 2
) -> float:
    """The hidden size from which on attention's two collectives fit behind its products."""
    if not 0 < kv_share <= 1:
        raise ValueError(f"kv_share is {kv_share}; give key and value heads over query heads, above 0 and at most 1")
    # Two collectives; products with (1 + 2g) h and h columns.
    one_product = min_hidden_for_tensor_parallel(peak_flops, bandwidth, tensor_parallel, bytes_per_element)
    return one_product * 2 / (2 + 2 * kv_share)


def tensor_parallel_mlp_ratio(
    peak_flops: float,
    bandwidth: float,
    ffn: float,
    tensor_parallel: int,
    gated: bool = False,
    bytes_per_element: float = 2,
) -> float:
    """All-gather and reduce-scatter around the MLP over its products: b (T-1) F / (m ffn B), for m matrices.

    m is 2, or 3 if ``gated``. The hidden size cancels with the tokens: only the width of the MLP counts.
    """
    positive(ffn=ffn)
    return min_ffn_for_tensor_parallel_mlp(peak_flops, bandwidth, tensor_parallel, gated, bytes_per_element) / ffn


def min_ffn_for_tensor_parallel_mlp(
    peak_flops: float, bandwidth: float, tensor_parallel: int, gated: bool = False, bytes_per_element: float = 2
) -> float:
    """The width of the MLP from which on its two collectives fit behind its products."""
    one_product = min_hidden_for_tensor_parallel(peak_flops, bandwidth, tensor_parallel, bytes_per_element)
    return one_product * 2 / _matrices(gated)


def max_tensor_parallel_degree(
    peak_flops: float, bandwidth: float, ffn: float, gated: bool = False, bytes_per_element: float = 2
) -> float:
    """Ranks (a real number) up to which tensor parallelism of the MLP hides: 1 + m ffn B / (b F).

    >>> round(max_tensor_parallel_degree(990e12, 450e9, ffn=28672), 1)
    14.0
    """
    positive(peak_flops=peak_flops, bandwidth=bandwidth, ffn=ffn, bytes_per_element=bytes_per_element)
    return 1 + _matrices(gated) * ffn * bandwidth / (bytes_per_element * peak_flops)


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
    experts, tokens and hidden size cancel. Experts are equally busy. ``ffn`` is the width of one of them.
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
    return (
        2 / _matrices(gated) * min_tokens_for_data_parallel(peak_flops, bandwidth, expert_parallel, bytes_per_element)
    )


# ---- ZeRO-3 with tensor parallel


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
    """Communication over the forward pass of an MLP on X ranks of ZeRO-3 by T of tensor parallelism.

    Each shard gathers 1/T of the parameters, for the tokens of T ranks: ``zero3_ratio`` with T times the tokens. The
    activations' collectives add ``tensor_parallel_mlp_ratio``. One after the other they count as the sum; with
    ``concurrent``, on links of their own, as the longer.
    """
    positive(tokens=tokens)
    ways = ranks(tensor_parallel)
    parameters = zero3_ratio(peak_flops, zero_bandwidth, tokens * ways, zero_ranks, bytes_per_element)
    activations = tensor_parallel_mlp_ratio(peak_flops, tensor_bandwidth, ffn, ways, gated, bytes_per_element)
    return _together(parameters, activations, concurrent)


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
    return sqrt(2 * batch_tokens * gpus * zero_bandwidth / (_matrices(gated) * ffn * tensor_bandwidth))


def min_tokens_for_mixed(
    peak_flops: float,
    zero_bandwidth: float,
    tensor_bandwidth: float,
    ffn: float,
    gated: bool = False,
    bytes_per_element: float = 2,
    concurrent: bool = False,
) -> float:
    """Tokens a GPU needs in a step so that ZeRO-3 with tensor parallelism hides, at the best degree of each.

    2 b^2 F^2 / (m ffn Bz Bt) for many ranks of either, a quarter of that if ``concurrent``: below what ZeRO-3 alone
    needs once the MLP is wide, because the square of F / B is over ``ffn``.
    """
    positive(peak_flops=peak_flops, ffn=ffn, bytes_per_element=bytes_per_element)
    positive(zero_bandwidth=zero_bandwidth, tensor_bandwidth=tensor_bandwidth)
    # ZeRO-3 needs tokens x T above the one, tensor parallelism T below ffn over the other.
    tokens_and_ways = min_tokens_for_zero3(peak_flops, zero_bandwidth, None, bytes_per_element)
    width_a_way = min_ffn_for_tensor_parallel_mlp(peak_flops, tensor_bandwidth, 2, gated, bytes_per_element)
    return (1 if concurrent else 4) * tokens_and_ways * width_a_way / ffn


# ---- pipeline


def pipeline_parallel_ratio(
    peak_flops: float,
    bandwidth: float,
    hidden: float,
    layers: float,
    bytes_per_element: float = 2,
    squares_per_layer: float = 16,
) -> float:
    """Sending the activations over the next stage's forward pass: b F / (2 * 16 h L B), for L layers a stage.

    b tokens h bytes against 2 tokens 16 h^2 L FLOP: tokens cancel. ``squares_per_layer`` is a layer's parameters in
    h^2: 16 with a gated MLP of width 4h, 12 without the gate.
    """
    positive(layers=layers)
    return min_layers_for_pipeline(peak_flops, bandwidth, hidden, bytes_per_element, squares_per_layer) / layers


def min_layers_for_pipeline(
    peak_flops: float, bandwidth: float, hidden: float, bytes_per_element: float = 2, squares_per_layer: float = 16
) -> float:
    """Layers a stage needs (a real number) so that sending its activations fits behind the next stage's work."""
    positive(peak_flops=peak_flops, bandwidth=bandwidth, hidden=hidden)
    positive(bytes_per_element=bytes_per_element, squares_per_layer=squares_per_layer)
    return bytes_per_element * peak_flops / (2 * squares_per_layer * hidden * bandwidth)


def _together(one, other, concurrent):
    return max(one, other) if concurrent else one + other


def _matrices(gated):
    return 3 if gated else 2
