"""Where a GPU's memory goes in training: model states, what the backward pass needs, buffers.

>>> model_state_bytes(7.5e9, stage=2, world_size=64) / 1e9  # 7.5e9 parameters, ZeRO-2 on 64 GPUs
16.640625
>>> activation_bytes(tokens=2048, sequence=2048, hidden=12288, heads=96) / 1e9  # one layer of GPT-3, one sequence
2.868903936

All sizes are in bytes on one GPU; GB is 1e9. What the allocator loses to fragmentation is not modelled.

Rajbhandari et al., "ZeRO" (2020); Korthikanti et al., "Reducing Activation Recomputation" (2022).
"""

from ringzero.costs.page.inputs import known, positive, ranks

FP32_NUMBERS = (("sgd", 0), ("momentum", 1), ("adam", 2), ("adamw", 2))  # that an optimizer keeps for each parameter
RECOMPUTATIONS = (("none", "nothing"), ("selective", "attention's s x s matrices"), ("full", "the whole layer"))


def bytes_per_param(
    optimizer: str = "adam", mixed_precision: bool = True, fp32_gradient_accumulation: bool = False
) -> tuple[int, int, int]:
    """Bytes a parameter costs as ``(parameter, gradient, optimizer)``: the ``each`` of the functions below.

    fp32 training is (4, 4, 4 a number kept). Mixed precision (Micikevicius et al. 2018) is (2, 2, 4 + 4 a number kept):
    the optimizer holds the fp32 parameter, so Adam's 12 bytes are 3 fp32 elements. Gradients that are accumulated in
    fp32 over micro-batches take 4 more.
    """
    known(FP32_NUMBERS, optimizer, "optimizer")
    numbers = 4 * dict(FP32_NUMBERS)[optimizer]
    if not mixed_precision:
        return 4, 4, numbers
    return 2, 6 if fp32_gradient_accumulation else 2, 4 + numbers


def torch_optimizer_bytes(params: int, tensors: int, optimizer: str = "adam") -> int:
    """Bytes of the ``state`` of torch's optimizer for ``params`` fp32 numbers in ``tensors`` tensors, exactly.

    ``optimizer`` is a name in ``FP32_NUMBERS``. Adam and AdamW also keep a step count of 4 bytes for each tensor.
    """
    positive(params=params, tensors=tensors)
    _, _, numbers = bytes_per_param(optimizer, mixed_precision=False)
    return numbers * params + (4 * tensors if optimizer in ("adam", "adamw") else 0)


def model_state_parts(
    params: float, stage: int = 0, world_size: int = 1, each: tuple[float, float, float] = (2, 2, 12)
) -> tuple[float, float, float]:
    """Bytes on one of ``world_size`` ranks as ``(parameters, gradients, optimizer)``, sharded as ZeRO's stage says.

    Stage 1 divides the optimizer's states among the ranks, 2 the gradients too, 3 the parameters too. ``each`` is
    what ``bytes_per_param`` gives. Shards count as equal: each is Psi / N parameters, though the last may be smaller.
    """
    positive(params=params)
    parts = _parts_per_param(stage, world_size, each)
    _check_shards(stage, world_size, params)
    return tuple([params * part for part in parts])


def model_state_bytes(
    params: float, stage: int = 0, world_size: int = 1, each: tuple[float, float, float] = (2, 2, 12)
) -> float:
    """Bytes of parameters, gradients and optimizer states on one rank (Rajbhandari et al. 2020, figure 1)."""
    return sum(model_state_parts(params, stage, world_size, each))


def max_params(
    memory_bytes: float,
    stage: int = 0,
    world_size: int = 1,
    tensor_parallel: int = 1,
    each: tuple[float, float, float] = (2, 2, 12),
) -> float:
    """The largest model whose states fit, activations aside. ``world_size`` is the data-parallel degree.

    Tensor parallelism gives each GPU 1/T of the model, so T times as much fits (Rajbhandari et al. 2020, table 2).
    """
    positive(memory_bytes=memory_bytes, tensor_parallel=tensor_parallel)
    return memory_bytes / sum(_parts_per_param(stage, world_size, each)) * tensor_parallel


def communication_elements(
    params: float, stage: int = 0, world_size: int | None = None, micro_batches: int = 1
) -> float:
    """Elements that each rank sends in a step (Rajbhandari et al. 2020, section 7): 2, 2, 2, 3 times the parameters.

    Stage 0 all-reduces the gradients; 1 and 2 reduce-scatter them and all-gather the parameters; 3 gathers the
    parameters twice. Exactly, a rank sends (N-1)/N of that: give ``world_size`` for it; None is the paper's convention.
    Stages 2 and 3 keep no whole gradient, so they communicate it for every micro-batch, and 3 its parameters as well.
    """
    positive(params=params, micro_batches=micro_batches)
    _check_shards(stage, 1 if world_size is None else world_size, params)
    others = 1 if world_size is None else (world_size - 1) / world_size
    return (2, 2, micro_batches + 1, 3 * micro_batches)[stage] * params * others


def attention_activation_coefficient(heads: int, sequence: int, hidden: int) -> float:
    """5as/h: what attention's s x s matrices add to the 34 of ``activation_bytes``. GPT-3: 80."""
    positive(heads=heads, sequence=sequence, hidden=hidden)
    return 5 * heads * sequence / hidden


def selective_recomputation_saving(heads: int, sequence: int, hidden: int) -> float:
    """The part of a layer's activations that recomputing attention's s x s matrices saves. GPT-3: 0.70."""
    attention = attention_activation_coefficient(heads, sequence, hidden)
    return attention / (34 + attention)


def layer_activations(
    tokens: int,
    sequence: int,
    hidden: int,
    heads: int,
    bytes_per_element: float = 2,
    mask_bytes: float = 1,
    recomputation: str = "none",
    flash_attention: bool = False,
    dropout: bool = True,
) -> list[tuple[str, float, str]]:
    """What the backward pass of one layer needs, as ``(name, bytes, split)`` in the order of the forward pass.

    The layer: LayerNorm, attention, dropout, LayerNorm, MLP of width 4h with GELU, dropout (Korthikanti et al. 2022,
    section 4). ``split`` says what divides a row: "tensor" or "sequence" parallelism. ``mask_bytes`` is 1 for a GPU's
    dropout masks; a CPU keeps them in the input's dtype: give ``bytes_per_element``. Each storage counts once,
    parameters do not; a LayerNorm's mean and deviation, two numbers a token, are left out.

    ``recomputation`` "selective" drops what has s x s elements, "full" all but the layer's input. ``flash_attention``
    computes attention in one kernel and keeps one fp32 number a head and token instead of the s x s matrices (Dao et
    al. 2022).
    """
    positive(tokens=tokens, sequence=sequence, hidden=hidden, heads=heads)
    positive(bytes_per_element=bytes_per_element, mask_bytes=mask_bytes)
    size, mask = tokens * hidden * bytes_per_element, tokens * hidden * mask_bytes
    squares = heads * tokens * sequence
    known(RECOMPUTATIONS, recomputation, "recomputation")
    inputs = [("input of the first LayerNorm", size, "sequence")]
    if recomputation == "full":
        return inputs
    attention = [
        ("softmax", squares * bytes_per_element, "tensor"),
        ("mask of attention's dropout", squares * mask_bytes, "tensor"),
        ("attention's dropout", squares * bytes_per_element, "tensor"),
    ]
    if flash_attention:
        attention = [("log-sum-exp", 4 * heads * tokens, "tensor")]
    if recomputation == "selective":
        attention = []
    rows = (
        inputs
        + [("input of Q, K, V", size, "sequence"), ("Q, K, V", 3 * size, "tensor")]
        + attention
        + [
            ("input of the projection", size, "tensor"),
            ("mask of the first dropout", mask, "sequence"),
            ("input of the second LayerNorm", size, "sequence"),
            ("input of the MLP", size, "sequence"),
            ("input of GELU", 4 * size, "tensor"),
            ("output of GELU", 4 * size, "tensor"),
            ("mask of the second dropout", mask, "sequence"),
        ]
    )
    return [row for row in rows if dropout or "dropout" not in row[0]]


def activation_bytes(
    tokens: int,
    sequence: int,
    hidden: int,
    heads: int,
    layers: int = 1,
    tensor_parallel: int = 1,
    sequence_parallel: bool = False,
    bytes_per_element: float = 2,
    mask_bytes: float = 1,
    recomputation: str = "none",
    flash_attention: bool = False,
    dropout: bool = True,
) -> float:
    """Bytes that ``layers`` layers keep on one GPU. ``tokens`` are sb; a layer is that of ``layer_activations``.

    sbh(34 + 5as/h) a layer, in 16 bits, with 1-byte masks and no FlashAttention; over T GPUs of tensor parallelism
    sbh(10 + 24/T + 5as/hT), and with sequence parallelism all of it over T. Selective recomputation has no 5as/h; full
    keeps 2sbh (Korthikanti et al. 2022, table 2).
    """
    positive(layers=layers, tensor_parallel=tensor_parallel)
    rows = layer_activations(
        tokens, sequence, hidden, heads, bytes_per_element, mask_bytes, recomputation, flash_attention, dropout
    )
    ways = {"tensor": tensor_parallel, "sequence": tensor_parallel if sequence_parallel else 1}
    return layers * sum([size / ways[split] for _, size, split in rows])


def output_activation_bytes(
    tokens: int,
    hidden: int,
    vocab: int,
    tensor_parallel: int = 1,
    sequence_parallel: bool = False,
    bytes_per_element: float = 2,
) -> float:
    """Bytes kept after the last layer: inputs of the LayerNorm and of the head, and the logits, in fp32 for the loss.

    4sbh(1 + v/h) with 16 bits, once for the whole model (Korthikanti et al. 2022, section 4.3).
    """
    positive(tokens=tokens, hidden=hidden, vocab=vocab, tensor_parallel=tensor_parallel)
    positive(bytes_per_element=bytes_per_element)
    inputs = 2 * tokens * hidden * bytes_per_element / (tensor_parallel if sequence_parallel else 1)
    return inputs + 4 * tokens * vocab / tensor_parallel


def gathered_layer_bytes(largest_layer_params: float) -> float:
    """Bytes that ZeRO-3 holds unsharded, in 16 bits: the layer being computed, the next one, one layer's gradient.

    DeepSpeed's convention is 4 bytes a parameter of the largest layer, without the next one.
    """
    positive(largest_layer_params=largest_layer_params)
    return 3 * 2 * largest_layer_params


def _parts_per_param(stage, world_size, each):
    _check_shards(stage, world_size)
    parameter, gradient, optimizer = each
    return (
        parameter / (world_size if stage >= 3 else 1),
        gradient / (world_size if stage >= 2 else 1),
        optimizer / (world_size if stage >= 1 else 1),
    )


def _check_shards(stage, world_size, params=None):
    if stage not in (0, 1, 2, 3):
        raise ValueError(f"stage is {stage}; ZeRO has the stages 0 (nothing sharded), 1, 2, 3")
    ranks(world_size)
    if params is not None and stage > 0 and world_size > params:
        raise ValueError(f"world_size is {world_size}; with {params} parameters some ranks would hold no shard")
