"""Where a GPU's memory goes in training: model states, what the backward pass needs, buffers.

>>> model_state_bytes(7.5e9, stage=2, world_size=64) / 1e9  # 7.5e9 parameters, ZeRO-2 on 64 GPUs
16.640625
>>> activation_bytes(tokens=2048, sequence=2048, hidden=12288, heads=96) / 1e9  # one layer of GPT-3, one sequence
2.868903936

All sizes are in bytes on one GPU; GB is 1e9. What the allocator loses to fragmentation is not modelled.

Rajbhandari et al., "ZeRO" (2020); Korthikanti et al., "Reducing Activation Recomputation" (2022).
"""

from ringzero.costs.inputs import known, positive, ranks

FP32_NUMBERS = (("sgd", 0), ("momentum", 1), ("adam", 2), ("adamw", 2))  # that an optimizer keeps for each parameter
RECOMPUTATIONS = (("none", "nothing"), ("selective", "attention's s x s matrices"), ("full", "the whole layer"))


def tensor_bytes(elements: float, bytes_per_element: float) -> float:
    """Bytes of a tensor. GPT-3's gradients: 175e9 elements of 2 bytes, 350 GB."""
    positive(elements=elements, bytes_per_element=bytes_per_element)
    return elements * bytes_per_element


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


def deepspeed_zero2_bytes(
    params: float, gpus_per_node: int = 1, nodes: int = 1, offload: str = "none", buffer_factor: float = 1.5
) -> tuple[float, float]:
    """``(cpu, gpu)`` bytes of a node and of a GPU as DeepSpeed's ZeRO-2 estimator counts them (memory.rst).

    It differs from the ZeRO paper by design: 4 + 16/N bytes a parameter where the paper has 2 + 14/N. The 16-bit
    gradients stay whole, fp32 ones are sharded beside them, and the CPU's part is raised by ``buffer_factor``.
    ``offload`` is "none" or "optimizer". DeepSpeed prints GiB and writes GB.
    """
    positive(params=params, gpus_per_node=gpus_per_node, nodes=nodes)
    gpus = gpus_per_node * nodes
    both = (
        ("none", (4 * gpus_per_node * params * buffer_factor, 4 * params + 16 * params / gpus)),
        ("optimizer", (max(4 * gpus, 16) * params * buffer_factor, 2 * params)),
    )
    known(both, offload, "offload")
    return dict(both)[offload]


def deepspeed_zero3_bytes(
    params: float,
    largest_layer_params: float,
    gpus_per_node: int = 1,
    nodes: int = 1,
    offload: str = "none",
    zero_init: bool = True,
    buffer_factor: float = 1.5,
) -> tuple[float, float]:
    """``(cpu, gpu)`` bytes of a node and of a GPU as DeepSpeed's ZeRO-3 estimator counts them (memory.rst).

    18 bytes a parameter: 2 + 4 + 4 + 8, the gradient in fp32; the paper has 16. A layer being computed takes 4 more
    for its parameters and gradients in 16 bits. ``offload`` is "none", "optimizer", or "all" for the parameters too.
    Without ``zero_init`` every process of a node first builds the whole model in fp32 on the CPU.
    """
    positive(params=params, largest_layer_params=largest_layer_params, gpus_per_node=gpus_per_node, nodes=nodes)
    offloads = (("none", 0), ("optimizer", 16), ("all", 18))
    known(offloads, offload, "offload")
    on_cpu = dict(offloads)[offload]
    gpu = 4 * largest_layer_params + (18 - on_cpu) * params / (gpus_per_node * nodes)
    offloaded = on_cpu * params / nodes
    built = 4 * gpus_per_node * params
    if zero_init:  # layer by layer
        built = 4 * gpus_per_node * largest_layer_params if offload == "none" else 0
    return max(offloaded, built) * buffer_factor, gpu


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
    logit_bytes: float = 4,
) -> float:
    """Bytes kept after the last layer: inputs of the LayerNorm and of the head, and the logits, in fp32 for the loss.

    4sbh(1 + v/h) with 16 bits, once for the whole model (Korthikanti et al. 2022, section 4.3).
    """
    positive(tokens=tokens, hidden=hidden, vocab=vocab, tensor_parallel=tensor_parallel)
    positive(bytes_per_element=bytes_per_element, logit_bytes=logit_bytes)
    inputs = 2 * tokens * hidden * bytes_per_element / (tensor_parallel if sequence_parallel else 1)
    return inputs + tokens * vocab * logit_bytes / tensor_parallel


def gathered_layer_bytes(largest_layer_params: float, prefetch: int = 1, bytes_per_element: float = 2) -> float:
    """Bytes that ZeRO-3 holds unsharded: the layer being computed, ``prefetch`` layers ahead, one layer's gradient.

    With no prefetch it is 4 bytes a parameter of the largest layer, DeepSpeed's convention.
    """
    if not prefetch >= 0:
        raise ValueError(f"prefetch is {prefetch}; give the number of layers gathered ahead, 0 or more")
    return (2 + prefetch) * tensor_bytes(largest_layer_params, bytes_per_element)


def training_parts(
    params: float,
    layers: int,
    hidden: int,
    heads: int,
    sequence: int,
    micro_batch: int = 1,
    vocab: int = 0,
    stage: int = 0,
    world_size: int = 1,
    tensor_parallel: int = 1,
    recomputation: str = "none",
    flash_attention: bool = True,
    dropout: bool = False,
    optimizer_bytes: float = 12,
    fp32_gradient_accumulation: bool = False,
    prefetch: int = 1,
) -> list[tuple[str, float]]:
    """Where the bytes of one GPU go when a transformer is trained in mixed precision, as ``(name, bytes)``.

    It fits if their sum is below the GPU's memory, of which fragmentation and the CUDA context take some too.
    ``world_size`` ranks of data parallelism share the model's states as ZeRO's ``stage`` says; ``tensor_parallel`` GPUs
    share each of their parts, and the sequence between products. ``optimizer_bytes`` are those a parameter: 12 for
    Adam, 4 + 4 a number kept (``bytes_per_param``). A layer is that of ``layer_activations``, its width 4h; ``vocab`` 0
    leaves the head's activations out. "layer computed again" is what recomputation brings back, a layer at a time;
    "gathered layers" is what stage 3 holds whole, ``prefetch`` layers ahead, for layers of equal size.

    >>> for name, size in training_parts(8e9, 32, 4096, 32, 8192, vocab=128256, stage=3, world_size=64):
    ...     print(f"{name}: {size / 1e9:.2f} GB")
    parameters: 0.25 GB
    gradients: 0.25 GB
    optimizer: 1.50 GB
    gathered layers: 1.50 GB
    activations: 34.39 GB
    layer computed again: 0.00 GB
    head: 4.34 GB
    """
    positive(params=params, layers=layers, micro_batch=micro_batch, tensor_parallel=tensor_parallel)
    if not optimizer_bytes >= 0:
        raise ValueError(f"optimizer_bytes is {optimizer_bytes}; give 0 or more bytes a parameter")
    if not vocab >= 0:
        raise ValueError(f"vocab is {vocab}; give 0 or more; 0 leaves the head's activations out")
    parameter, gradient, _ = bytes_per_param(fp32_gradient_accumulation=fp32_gradient_accumulation)
    share = params / tensor_parallel
    states = model_state_parts(share, stage, world_size, (parameter, gradient, optimizer_bytes))
    tokens = micro_batch * sequence
    kept, whole = [
        activation_bytes(
            tokens,
            sequence,
            hidden,
            heads,
            tensor_parallel=tensor_parallel,
            sequence_parallel=True,
            recomputation=how,
            flash_attention=flash_attention,
            dropout=dropout,
        )
        for how in (recomputation, "none")
    ]
    return [
        ("parameters", states[0]),
        ("gradients", states[1]),
        ("optimizer", states[2]),
        ("gathered layers", gathered_layer_bytes(share / layers, min(prefetch, layers - 1)) if stage == 3 else 0.0),
        ("activations", layers * kept),
        ("layer computed again", whole - kept),
        ("head", output_activation_bytes(tokens, hidden, vocab, tensor_parallel, True) if vocab else 0.0),
    ]


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
