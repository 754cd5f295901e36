"""How many parameters and how much arithmetic a transformer has.

>>> gpt_params(layers=12, hidden=768, vocab=50257, positions=1024)  # GPT-2's checkpoint, to the parameter
124439808
>>> for name, *shape in layer_matmuls(batch=1, sequence=1024, hidden=768, heads=12):
...     print(name, shape, matmul_flops(*shape))
Q, K, V [1, 1024, 768, 2304] 3623878656
scores [12, 1024, 64, 1024] 1610612736
values [12, 1024, 1024, 64] 1610612736
projection [1, 1024, 768, 768] 1207959552
up [1, 1024, 768, 3072] 4831838208
down [1, 1024, 3072, 768] 4831838208

A FLOP is one addition or one multiplication, so an (m x k) by (k x n) product is 2mkn. Only matrix products are
counted. Attention is counted whole, though a causal mask throws half of it away: that is the convention of the papers.

Vaswani et al., "Attention Is All You Need" (2017); Kaplan et al. (2020); Korthikanti et al. (2022).
"""

from ringzero.costs.page.inputs import known, positive


def gpt_params(
    layers: int, hidden: int, vocab: int, positions: int, ffn: int | None = None, tied_embeddings: bool = True
) -> int:
    """Parameters of a GPT: learned positions, biases everywhere but in the head, LayerNorms (Radford et al. 2019).

    ``ffn`` is the width of the MLP, 4 ``hidden`` unless given. With ``tied_embeddings`` the head is the embedding.
    """
    positive(layers=layers, hidden=hidden, vocab=vocab, positions=positions)
    embeddings = (vocab + positions + (0 if tied_embeddings else vocab)) * hidden
    return embeddings + layers * _biased_layer_params(hidden, ffn) + 2 * hidden


def llama_params(
    layers: int,
    hidden: int,
    vocab: int,
    ffn: int,
    heads: int,
    kv_heads: int | None = None,
    tied_embeddings: bool = False,
) -> int:
    """Parameters of a LLaMA: no biases, RMSNorms, a gated MLP of three matrices (Touvron et al. 2023).

    ``kv_heads`` below ``heads`` is grouped-query attention: several query heads share a key and a value head.

    >>> llama_params(layers=80, hidden=8192, vocab=32000, ffn=28672, heads=64, kv_heads=8)  # Llama 2 70B
    68976648192
    """
    positive(layers=layers, hidden=hidden, vocab=vocab, ffn=ffn)
    head, kv_heads = _heads(hidden, heads, kv_heads)
    attention = 2 * hidden * hidden + 2 * hidden * kv_heads * head
    layer = attention + 3 * hidden * ffn + 2 * hidden
    return (1 if tied_embeddings else 2) * vocab * hidden + layers * layer + hidden


def forward_flops(params: float, tokens: float) -> float:
    """2 FLOP a parameter and token: a multiplication and an addition. Attention's s x s products are left out."""
    positive(params=params, tokens=tokens)
    return 2 * params * tokens


def layer_matmuls(
    batch: int,
    sequence: int,
    hidden: int,
    heads: int,
    kv_heads: int | None = None,
    ffn: int | None = None,
    gated: bool = False,
) -> list[tuple[str, int, int, int, int]]:
    """The products of one layer forward, as ``(name, count, m, k, n)``: ``count`` times (m x k) by (k x n)."""
    positive(batch=batch, sequence=sequence, ffn=1 if ffn is None else ffn)
    head, kv_heads = _heads(hidden, heads, kv_heads)
    tokens, ffn = batch * sequence, ffn or 4 * hidden
    return [
        ("Q, K, V", 1, tokens, hidden, (heads + 2 * kv_heads) * head),
        ("scores", batch * heads, sequence, head, sequence),
        ("values", batch * heads, sequence, sequence, head),
        ("projection", 1, tokens, hidden, hidden),
        ("up and gate" if gated else "up", 1, tokens, hidden, 2 * ffn if gated else ffn),
        ("down", 1, tokens, ffn, hidden),
    ]


def matmul_flops(count: int, m: int, k: int, n: int) -> int:
    """FLOP of ``count`` products of (m x k) by (k x n)."""
    positive(count=count, m=m, k=k, n=n)
    return 2 * count * m * k * n


def matmul_intensity(m: int, k: int, n: int, bytes_per_element: float = 2) -> float:
    """FLOP a byte: both inputs are read and the result written, once each (Williams et al. 2009, the roofline).

    A product whose intensity is below ``ridge_point`` waits for memory.

    >>> matmul_intensity(4096, 4096, 4096), matmul_intensity(1, 4096, 4096)  # many tokens, and one
    (1365.3333333333333, 0.9995119570522206)
    """
    positive(bytes_per_element=bytes_per_element)
    return matmul_flops(1, m, k, n) / (bytes_per_element * (m * k + k * n + m * n))


def ridge_point(peak_flops: float, memory_bandwidth: float) -> float:
    """The FLOP a byte (FLOP/s over bytes/s) from which on arithmetic, and not memory, is the limit."""
    positive(peak_flops=peak_flops, memory_bandwidth=memory_bandwidth)
    return peak_flops / memory_bandwidth


def layer_flops(
    batch: int,
    sequence: int,
    hidden: int,
    heads: int,
    kv_heads: int | None = None,
    ffn: int | None = None,
    gated: bool = False,
) -> int:
    """FLOP of one layer forward. For a GPT it is 24bsh^2 + 4bs^2h."""
    products = layer_matmuls(batch, sequence, hidden, heads, kv_heads, ffn, gated)
    return sum([matmul_flops(*shape) for _, *shape in products])


def attention_flops(batch: int, sequence: int, hidden: int) -> int:
    """FLOP of one layer's scores and values forward: 4bs^2h, whatever the number of heads."""
    return 2 * matmul_flops(batch, sequence, sequence, hidden)


def logits_flops(batch: int, sequence: int, hidden: int, vocab: int) -> int:
    """FLOP of the head forward: 2bshv."""
    return matmul_flops(1, batch * sequence, hidden, vocab)


def model_flops(batch: int, sequence: int, layers: int, hidden: int, vocab: int) -> int:
    """FLOP that a training step of a GPT needs, forward and backward (Korthikanti et al. 2022, appendix A).

    72bsLh^2 (1 + s/6h + v/12hL), here multiplied out: three times the forward's, for an MLP of width 4h. ``batch`` is
    that of all GPUs together.
    """
    positive(batch=batch, sequence=sequence, layers=layers, hidden=hidden, vocab=vocab)
    a_token = layers * (72 * hidden * hidden + 12 * sequence * hidden) + 6 * hidden * vocab
    return batch * sequence * a_token


def hardware_flops(
    batch: int, sequence: int, layers: int, hidden: int, vocab: int, recomputation: str = "selective"
) -> int:
    """FLOP that the step performs: ``model_flops`` and what "none", "selective" or "full" recomputation adds.

    For "selective" this is the equation of Korthikanti et al. 2022, s/3h for s/6h: it adds attention's 12bs^2h a layer,
    forward and backward. What runs again is its forward, a third of that: see ``recomputed_flops``.
    """
    added = (
        ("none", 0),
        ("selective", 3 * layers * attention_flops(batch, sequence, hidden)),
        ("full", recomputed_flops(batch, sequence, layers, hidden, "full")),
    )
    known(added, recomputation, "recomputation")
    return model_flops(batch, sequence, layers, hidden, vocab) + dict(added)[recomputation]


def recomputed_flops(batch: int, sequence: int, layers: int, hidden: int, recomputation: str) -> int:
    """FLOP of the products that run a second time: none, attention's scores and values, or each layer's forward."""
    positive(layers=layers)
    again = (
        ("none", 0),
        ("selective", attention_flops(batch, sequence, hidden)),
        ("full", layer_flops(batch, sequence, hidden, heads=1)),
    )
    known(again, recomputation, "recomputation")
    return layers * dict(again)[recomputation]


def utilization(flops: float, seconds: float, gpus: int, peak_flops: float) -> float:
    """The part of the GPUs' peak: MFU of ``model_flops`` (Chowdhery et al. 2022), HFU of ``hardware_flops``.

    >>> # 22B parameters on 8 A100. The paper has 0.415: its seconds were not rounded
    >>> round(utilization(model_flops(4, 2048, 48, 6144, 51200), seconds=1.1, gpus=8, peak_flops=312e12), 3)
    0.417
    """
    positive(flops=flops, seconds=seconds, gpus=gpus, peak_flops=peak_flops)
    return flops / (seconds * gpus * peak_flops)


def _biased_layer_params(hidden, ffn):
    """Q, K, V and projection; two matrices of MLP; two LayerNorms, each a gain and a bias."""
    ffn = 4 * hidden if ffn is None else ffn
    positive(ffn=ffn)
    return 4 * _linear(hidden, hidden) + _linear(hidden, ffn) + _linear(ffn, hidden) + 2 * 2 * hidden


def _linear(inputs, outputs):
    return inputs * outputs + outputs


def _heads(hidden, heads, kv_heads):
    """``(width of a head, kv_heads)``."""
    kv_heads = heads if kv_heads is None else kv_heads
    positive(hidden=hidden, heads=heads, kv_heads=kv_heads)
    if hidden % heads:
        raise ValueError(f"hidden is {hidden}; it must be a multiple of heads, {heads}")
    if heads % kv_heads:
        raise ValueError(f"kv_heads is {kv_heads}; it must divide heads, {heads}")
    return hidden // heads, kv_heads
