"""The course's four calculators, ready for a page: each function returns a figure, and a cell ends with the call."""

from ringzero.costs.page import calculators, hardware
from ringzero.drawing.figure import Figure
from ringzero_course.figures.calculators import Choice, Number, calculator, powers_of_two, round_numbers

Fields = dict[str, Choice | Number]
RANKS = [*range(2, 64), *powers_of_two(64, 16384)]
MODELS = [name for name, _ in calculators.MODELS]
GPUS = [name for name, row in hardware.GPUS if row["nvlink_gb_per_s"] > 0]


def does_it_fit() -> Figure:
    """Memory of a GPU in training, by parts, for each stage of ZeRO."""
    fields: Fields = {
        "model": Choice("model", MODELS, "GPT-3 6.7B", ["GPT-2 1.5B", "Megatron 22B"]),
        "gpu": Choice("GPU", GPUS, "A100"),
        "stage": Choice("ZeRO stage", [0, 1, 2, 3], 1, [0, 1, 2, 3]),
        "world_size": Number("GPUs", powers_of_two(1, 16384), 16, whole=True, grid=[1, 16, 256]),
        "batch": Number("sequences at a time", list(range(1, 65)), 2, whole=True),
        "sequence": Number("sequence length", powers_of_two(128, 32768), 2048, "tokens", whole=True),
        "recomputation": Choice("recompute", ["none", "selective", "full"], "selective"),
    }
    return calculator(
        calculators.does_it_fit,
        fields,
        caption="A GPT with dropout, trained by Adam in mixed precision: 16 bytes a parameter, of which each stage "
        "shards more. “selective” recomputes attention’s s × s matrices, as FlashAttention does. Memory lost between "
        "tensors, and what CUDA and NCCL take, come on top.",
    )


def will_it_overlap() -> Figure:
    """Communication against computing over the tokens of a micro-batch, for data parallelism, ZeRO-3 and HSDP."""
    fields: Fields = {
        "gpu": Choice("GPU", GPUS, "H100"),
        "reached": Number("of its peak reached", list(range(1, 101)), 40, "%", scale=0.01),
        "bandwidth": Number("network, each GPU", round_numbers(1, 200), 50, "GB/s", scale=1e9),
        "machines": Number("nodes of 8 GPUs", powers_of_two(1, 4096), 8, whole=True, grid=[2, 8, 128]),
        "piece": Number("bucket or layer", round_numbers(1, 10000), 25, "MB", scale=1e6, grid=[25, 400]),
        "tokens": Number(
            "tokens of a micro-batch", powers_of_two(64, 2**20), 8192, "tokens", whole=True, grid=[2048, 8192, 32768]
        ),
        "micro_batches": Number("micro-batches a step", list(range(1, 257)), 8, whole=True),
    }
    return calculator(
        calculators.will_it_overlap,
        fields,
        caption="bf16 gradients and parameters. The size of the model cancels: a model twice as large sends twice as "
        "much and computes twice as long. The first and the last piece are not counted: nothing hides them.",
    )


def which_all_reduce() -> Figure:
    """Seconds of four all-reduce algorithms over the size of the buffer."""
    fields: Fields = {
        "world_size": Number("ranks", RANKS, 48, whole=True, grid=[8, 1024]),
        "size": Number("buffer", round_numbers(0.001, 10000), 25, "MB", scale=1e6, grid=[0.01, 1, 1000]),
        "alpha": Number("latency of a message", round_numbers(0.5, 500), 5, "µs", scale=1e-6),
        "bandwidth": Number("bandwidth of a rank", round_numbers(0.1, 1000), 50, "GB/s", scale=1e9),
    }
    return calculator(
        calculators.which_all_reduce,
        fields,
        caption="Any rank reaches any other at full rate here. On a network where far ranks share links, halving and "
        "doubling loses: its first rounds send half of the buffer to the farthest rank.",
    )


def what_a_run_costs() -> Figure:
    """Days, GPU-hours and dollars of a training run."""
    fields: Fields = {
        "params": Number("parameters", round_numbers(0.1, 2000), 70, "billion", scale=1e9, grid=[8, 400]),
        "tokens": Number("tokens", round_numbers(0.01, 100), 15, "trillion", scale=1e12),
        "gpu": Choice("GPU", GPUS, "H100"),
        "gpus": Number("GPUs", powers_of_two(1, 131072), 128, whole=True, grid=[128, 1024, 8192]),
        "mfu": Number("MFU", list(range(1, 101)), 40, "%", scale=0.01),
        "dollars_per_gpu_hour": Number("price of a GPU-hour", [i / 10 for i in range(1, 151)], 2, "$"),
    }
    return calculator(
        calculators.what_a_run_costs,
        fields,
        caption="6 FLOP a parameter and token. A run that fails, waits or tries something out takes longer; MFU "
        "usually falls with the number of GPUs. For a mixture of experts give the parameters that a token meets.",
    )
