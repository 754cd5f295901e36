"""Will communication hide behind computation? Seconds of one over seconds of the other: below 1 it can.

>>> round(data_parallel_ratio(peak_flops=989e12, bandwidth=450e9, tokens=4096, world_size=8), 2)
0.47
>>> round(min_tokens_for_data_parallel(peak_flops=989e12, bandwidth=450e9, world_size=8))
1923

Each split of training has its ratio, and the threshold where the ratio is 1: the tokens, width, layers or ranks from
which on, or up to which, communication hides.

data parallel, ZeRO-3, hybrid (HSDP)    tokens a GPU
tensor parallel                         the width of the products, or the number of ranks
pipeline                                layers a stage

``costs.experts`` asks the same of mixtures of experts, ``costs.zero3_with_tensor`` of ZeRO-3 with tensor parallelism.

``peak_flops`` is in FLOP/s of one GPU; give what your programs reach of it for a realistic answer. ``bandwidth`` is in
bytes a second that one GPU sends while it receives as much: the bus bandwidth of a collective of the size at hand,
as nccl-tests print it or as ``effective_bandwidth`` has it from a fitted alpha and beta. The link's own rate
(``hardware.nvlink``) is more than any message reaches: H100s all-reduce at about 370 of 450 GB/s. Small buckets reach
far less: ``costs.page.nodes`` has the bandwidth of a piece, latency included. ``tokens`` are those of one GPU in one
micro-batch: of a step's many, data parallelism's all-reduce hides behind the last one's backward pass alone, and
ZeRO-3 gathers in each. Attention's scores and values compute without parameters and are left out. ValueError for an
argument that is not above 0.

The idea is that of the Ultra-Scale Playbook (Tazi et al. 2025, appendix), whose own formulas count elements where they
say bytes (``costs.playbook``); here every size is in bytes. Small groups follow "How to Scale
Your Model" (Austin et al. 2025).
"""

from ringzero.costs.page.inputs import positive, ranks


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
    """Tokens a GPU needs in a micro-batch so that the all-reduce hides behind its backward pass. None: many ranks."""
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
    """Tokens a GPU needs in a micro-batch so that the layers' parameters arrive in time. None: very many ranks."""
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
    """Tokens a GPU needs in a micro-batch so that HSDP's communication hides. Arguments as for ``hybrid_ratio``.

    >>> link = {"peak_flops": 989e12, "inside_bandwidth": 450e9, "across_bandwidth": 50e9}
    >>> round(min_tokens_for_hybrid(nodes=16, ranks_per_node=8, **link))  # H100s, NVLink and InfiniBand NDR
    4241
    >>> round(min_tokens_for_zero3(989e12, 8 * 50e9, 128))  # ZeRO-3, whose rings use all eight cards of a node
    2453
    """
    inside = min_tokens_for_zero3(peak_flops, inside_bandwidth, ranks_per_node, bytes_per_element)
    across = min_tokens_for_data_parallel(peak_flops, across_bandwidth, nodes, bytes_per_element) / ranks_per_node
    return max(inside, across) if concurrent else inside + across


# ---- tensor parallel: activations


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
    return one_product * 2 / matrices(gated)


def max_tensor_parallel_degree(
    peak_flops: float, bandwidth: float, ffn: float, gated: bool = False, bytes_per_element: float = 2
) -> float:
    """Ranks (a real number) up to which tensor parallelism of the MLP hides: 1 + m ffn B / (b F).

    >>> round(max_tensor_parallel_degree(990e12, 450e9, ffn=28672), 1)
    14.0
    """
    positive(peak_flops=peak_flops, bandwidth=bandwidth, ffn=ffn, bytes_per_element=bytes_per_element)
    return 1 + matrices(gated) * ffn * bandwidth / (bytes_per_element * peak_flops)


# ---- pipeline


def pipeline_parallel_ratio(
    peak_flops: float, bandwidth: float, hidden: float, layers: float, bytes_per_element: float = 2
) -> float:
    """Sending the activations over the next stage's forward pass: b F / (2 * 16 h L B), for L layers a stage.

    b tokens h bytes against 2 tokens 16 h^2 L FLOP: tokens cancel. A layer with a gated MLP of width 4h has 16 h^2
    parameters.
    """
    positive(peak_flops=peak_flops, bandwidth=bandwidth, hidden=hidden, layers=layers)
    positive(bytes_per_element=bytes_per_element)
    return bytes_per_element * peak_flops / (2 * 16 * hidden * layers * bandwidth)


def matrices(gated: bool) -> int:
    """Of an MLP."""
    return 3 if gated else 2
