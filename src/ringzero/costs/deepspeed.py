"""Memory as DeepSpeed's estimators count it (memory.rst): other bytes a parameter than the ZeRO paper, by design."""

from ringzero.costs.page.inputs import known, positive

BUFFERS = 1.5  # by which the estimators raise the CPU's part


def zero2_bytes(params: float, gpus_per_node: int = 1, nodes: int = 1, offload: str = "none") -> tuple[float, float]:
    """``(cpu, gpu)`` bytes of a node and of a GPU as DeepSpeed's ZeRO-2 estimator counts them (memory.rst).

    It differs from the ZeRO paper by design: 4 + 16/N bytes a parameter where the paper has 2 + 14/N. The 16-bit
    gradients stay whole, fp32 ones are sharded beside them, and the CPU's part is half as large again.
    ``offload`` is "none" or "optimizer". DeepSpeed prints GiB and writes GB.
    """
    positive(params=params, gpus_per_node=gpus_per_node, nodes=nodes)
    gpus = gpus_per_node * nodes
    both = (
        ("none", (4 * gpus_per_node * params * BUFFERS, 4 * params + 16 * params / gpus)),
        ("optimizer", (max(4 * gpus, 16) * params * BUFFERS, 2 * params)),
    )
    known(both, offload, "offload")
    return dict(both)[offload]


def zero3_bytes(
    params: float,
    largest_layer_params: float,
    gpus_per_node: int = 1,
    nodes: int = 1,
    offload: str = "none",
    zero_init: bool = True,
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
    return max(offloaded, built) * BUFFERS, gpu
