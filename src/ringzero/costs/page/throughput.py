"""How fast a training run is, how long it takes and what it costs: from tokens a second to days and dollars.

>>> llama = model_flops_per_token(matmul_params(32, 4096, 128256, 14336, 32, 8, gated=True), 32, 4096, sequence=8192)
>>> round(13812 * llama / 1e12)  # Llama 3 8B at 13,812 tokens a second on one H100, in TFLOP/s
800
>>> cost = run_cost(params=70e9, tokens=15e12, gpus=2048, peak_flops=989e12, mfu=0.4, dollars_per_gpu_hour=2)
>>> round(cost["days"]), round(cost["gpu_hours"]), round(cost["dollars"])
(90, 4423660, 8847321)

Model FLOPs are what the mathematics needs: forward and backward, 6 FLOP a parameter and token. Hardware FLOPs are what
is computed, with recomputation. Both come in several conventions, and a number without its convention cannot be
compared: which parameters count (with the input embedding or not), and whether a causal mask halves attention.

Chowdhery et al. 2022 (MFU); Narayanan et al. 2021 (equations 3 and 4: ``transformer.hardware_flops`` with "full").
"""

from ringzero.costs.page import transformer
from ringzero.costs.page.inputs import positive

DAY = 24 * 3600  # seconds


def matmul_params(
    layers: int,
    hidden: int,
    vocab: int,
    ffn: int | None = None,
    heads: int = 1,
    kv_heads: int | None = None,
    gated: bool = False,
) -> int:
    """Parameters that stand in a product: the layers' matrices and the head, without norms and the input embedding.

    A token's embedding is looked up, not multiplied (Megatron-LM's count). ``ffn`` is 4 ``hidden`` unless given.
    """
    positive(layers=layers, vocab=vocab)
    products = transformer.layer_matmuls(1, 1, hidden, heads, kv_heads, ffn, gated)
    layer = sum([k * n for name, _, _, k, n in products if name not in ("scores", "values")])
    return layers * layer + vocab * hidden


def model_flops_per_token(params: float, layers: int, hidden: int, sequence: int, causal: bool = False) -> float:
    """FLOP a token needs in training, forward and backward: 6 ``params`` + 12 L h s, attention counted whole.

    ``causal`` leaves out the half of attention that a causal mask throws away: 6 L h s. MosaicML gives all parameters
    and counts attention whole; Megatron-Bridge gives ``matmul_params`` and counts half.
    """
    positive(params=params, layers=layers, hidden=hidden, sequence=sequence)
    return 6 * params + (6 if causal else 12) * layers * hidden * sequence


def hardware_flops_per_token(params: float, layers: int, hidden: int, sequence: int, causal: bool = False) -> float:
    """FLOP a token takes when the whole forward pass is computed twice, to save memory: 4/3 of the model's."""
    return 4 * model_flops_per_token(params, layers, hidden, sequence, causal) / 3


def utilization(flops_per_token: float, tokens_per_second: float, gpus: int, peak_flops: float) -> float:
    """The part of the GPUs' peak: MFU of ``model_flops_per_token``, HFU of ``hardware_flops_per_token``.

    ``tokens_per_second`` are those of all ``gpus`` together, ``peak_flops`` FLOP/s of one.
    """
    positive(flops_per_token=flops_per_token, tokens_per_second=tokens_per_second)
    return transformer.utilization(flops_per_token * tokens_per_second, 1.0, gpus, peak_flops)


def run_cost(
    params: float, tokens: float, gpus: int, peak_flops: float, mfu: float, dollars_per_gpu_hour: float
) -> dict:
    """What a training run takes: 6 FLOP a parameter and token, at the part ``mfu`` of the GPUs' peak.

    ``params`` are those that a token meets: of a mixture of experts, the active ones. The dictionary has ``flops``
    (and ``exaflop``, 1e18 of them), ``seconds``, ``days``, ``gpu_hours``, ``dollars``, ``tokens_per_second`` of all
    GPUs and ``tokens_per_second_per_gpu``. A run without failures, data preparation and experiments.
    Raises ValueError for an ``mfu`` that is not above 0 and at most 1.
    """
    if not 0 < mfu <= 1:
        raise ValueError(f"mfu is {mfu}; give the part of the peak reached, above 0 and at most 1: 0.4 for 40 %")
    if not dollars_per_gpu_hour >= 0:
        raise ValueError(f"dollars_per_gpu_hour is {dollars_per_gpu_hour}; give 0 or more")
    positive(params=params, tokens=tokens, gpus=gpus, peak_flops=peak_flops)
    flops = 6.0 * params * tokens
    seconds = flops / (gpus * peak_flops * mfu)
    gpu_hours = gpus * seconds / 3600
    return {
        "flops": flops,
        "exaflop": flops / 1e18,
        "seconds": seconds,
        "days": seconds / DAY,
        "gpu_hours": gpu_hours,
        "dollars": gpu_hours * dollars_per_gpu_hour,
        "tokens_per_second": tokens / seconds,
        "tokens_per_second_per_gpu": tokens / seconds / gpus,
    }
