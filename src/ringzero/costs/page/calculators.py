"""Four questions, each answered with numbers and a plot: what a page's calculators compute, here and in the page.

>>> fits = does_it_fit("GPT-3 6.7B", gpu="H100", stage=3, world_size=64, batch=1, sequence=2048, recomputation="full")
>>> fits["verdict"], round(fits["answer"], 1)
('It fits.', 4.8)

Each function returns a dictionary. ``verdict`` is a sentence without numbers. ``answer`` is what the question asks for,
in ``unit`` (a word has no unit). ``rows`` are ``(what, value, unit)``. ``plot`` is what to draw:

lines    ``x`` and ``y`` name the axes, both logarithmic, ``series`` are ``(name, xs, ys)``, ``at`` is where on x we are
bars     ``x`` names the axis, ``bars`` are ``(name, values)``, stacked, ``parts`` names the values, ``at`` is our bar

``level`` is ``(name, value)``: a line to compare with. Arguments are in bytes, seconds, FLOP and parts of 1, as
everywhere in ``costs``; what is returned is in the unit that it names.
"""

from ringzero.costs.page import alpha_beta, hardware, memory, nodes, overlap, throughput, transformer
from ringzero.costs.page.coefficients import (
    double_binary_tree_all_reduce,
    rabenseifner_all_reduce,
    recursive_doubling_all_reduce,
    ring_all_reduce,
)
from ringzero.costs.page.inputs import known, positive, ranks

# Layers, hidden size, heads, vocabulary, positions. Radford et al. 2019 (GPT-2); Brown et al. 2020, table 2.1 (GPT-3);
# Korthikanti et al. 2022, table 3 (22B, 530B, 1T).
MODELS = (
    ("GPT-2 124M", (12, 768, 12, 50257, 1024)),
    ("GPT-2 1.5B", (48, 1600, 25, 50257, 1024)),
    ("GPT-3 6.7B", (32, 4096, 32, 50257, 2048)),
    ("Megatron 22B", (48, 6144, 64, 51200, 2048)),
    ("GPT-3 175B", (96, 12288, 96, 50257, 2048)),
    ("Megatron 530B", (105, 20480, 128, 51200, 2048)),
    ("Megatron 1T", (128, 25600, 160, 51200, 2048)),
)

ALL_REDUCES = ("ring", "double binary tree", "recursive doubling", "halving and doubling")
PARTS = ("parameters", "gradients", "optimizer", "gathered layers", "activations", "logits")
GB = 1e9
GPUS_PER_NODE = 8


def does_it_fit(
    model: str, gpu: str, stage: int, world_size: int, batch: int, sequence: int, recomputation: str = "selective"
) -> dict:
    """GB on one GPU by parts, against the GPU's memory, for each stage of ZeRO.

    Mixed precision with Adam, 16 bytes a parameter. ``batch`` sequences are computed at a time. Activations are those
    of ``memory.activation_bytes``: dropout, no FlashAttention, of which "selective" comes near. Without the memory that
    the allocator loses and that NCCL and CUDA take.
    """
    known(MODELS, model, "model")
    layers, hidden, heads, vocab, positions = dict(MODELS)[model]
    params = transformer.gpt_params(layers, hidden, vocab, positions)
    capacity = hardware.gpu(gpu)["memory_gb"]
    positive(batch=batch, sequence=sequence)
    tokens = batch * sequence
    activations = memory.activation_bytes(tokens, sequence, hidden, heads, layers, recomputation=recomputation)
    if recomputation == "full":  # while it runs again, a layer needs what it needs without recomputation
        activations += memory.activation_bytes(tokens, sequence, hidden, heads)
    logits = memory.output_activation_bytes(tokens, hidden, vocab)
    layer = (params - (vocab + positions + 2) * hidden) / layers
    bars = []
    for each_stage in range(4):
        states = memory.model_state_parts(params, each_stage, world_size)
        gathered = memory.gathered_layer_bytes(layer) if each_stage == 3 and world_size > 1 else 0
        parts = list(states) + [gathered, activations, logits]
        bars.append((f"stage {each_stage}", [part / GB for part in parts]))
    memory.model_state_parts(params, stage, world_size)  # refuses other stages
    chosen = bars[stage][1]
    total = sum(chosen)
    return {
        "verdict": "It fits." if total <= capacity else "It does not fit.",
        "answer": total,
        "unit": "GB",
        "rows": [("on one GPU", total, "GB"), ("memory of the GPU", capacity, "GB")]
        + [(part, value, "GB") for part, value in zip(PARTS, chosen)]  # noqa: B905  (MicroPython has no strict=)
        + [("parameters of the model", params / 1e9, "billion")],
        "plot": {
            "kind": "bars",
            "x": "GB on one GPU",
            "parts": PARTS,
            "bars": bars,
            "level": (gpu, capacity),
            "at": stage,
        },
    }


def will_it_overlap(
    gpu: str, reached: float, bandwidth: float, machines: int, piece: float, tokens: float, micro_batches: int
) -> dict:
    """Communication over computing, for bf16: ``machines`` of 8 GPUs, of whose peak the part ``reached`` is used.

    ``bandwidth`` is that of the network for each GPU, in bytes a second; ``costs.page.nodes`` has the seconds of a
    collective on ``piece`` bytes: a bucket of gradients, or the layer that ZeRO-3 and HSDP gather. A step has
    ``micro_batches`` of ``tokens`` on each GPU. Data parallelism sends behind the last backward pass, ZeRO-3 and HSDP
    behind each pass. The answer is the tokens that a micro-batch needs so that data parallelism's all-reduce hides.
    """
    _part_of_one("reached", reached)
    positive(bandwidth=bandwidth, tokens=tokens, micro_batches=micro_batches)
    if not machines >= 1:
        raise ValueError(f"machines is {machines}; give at least 1")
    flops, inside = reached * hardware.peak_flops(gpu), hardware.nvlink(gpu) * 1e9
    if not inside > 0:
        raise ValueError(f"gpu is {gpu!r}; it has no NVLink to shard over in a node")
    world_size, links = machines * GPUS_PER_NODE, (GPUS_PER_NODE, inside, bandwidth)
    large = nodes.bandwidth("all_reduce", None, machines, *links)
    least = overlap.min_tokens_for_data_parallel(flops, large, world_size)
    reached_by = nodes.bandwidth("all_reduce", piece, machines, *links)
    flat = overlap.min_tokens_for_data_parallel(flops, reached_by, world_size)
    zero3 = overlap.min_tokens_for_zero3(flops, nodes.bandwidth("all_gather", piece, machines, *links), world_size)
    across = bandwidth
    if machines > 1:  # one GPU of each node: they all-reduce the gradient of a shard
        across = nodes.bandwidth("all_reduce", piece / GPUS_PER_NODE, machines, 1, inside, bandwidth)
    gathered = nodes.bandwidth("all_gather", piece, 1, *links)
    hybrid = overlap.min_tokens_for_hybrid(flops, gathered, across, machines, GPUS_PER_NODE)
    xs = _geometric(64.0, 1048576.0, 15)
    series = (("data parallel", flat), ("ZeRO-3", zero3), ("HSDP", hybrid), ("no latency", least))
    return {
        "verdict": "The all-reduce hides behind the last backward pass."
        if flat <= tokens
        else "The all-reduce takes longer than the last backward pass: a part of it is waited for.",
        "answer": flat,
        "unit": "tokens",
        "rows": [
            ("tokens a micro-batch needs: data parallel", flat, "tokens"),
            ("with one buffer of any size, no latency", least, "tokens"),
            ("ZeRO-3", zero3, "tokens"),
            ("HSDP", hybrid, "tokens"),
            ("all-reduce of a piece", nodes.seconds("all_reduce", piece, machines, *links) * 1e6, "µs"),
            ("communication over computing: data parallel", flat / tokens, ""),
            (
                "waiting, but for the last piece: data parallel",
                _waiting(flat / tokens) * 2 / 3 / micro_batches * 100,
                "%",
            ),
            ("waiting, but for the last piece: ZeRO-3", _waiting(zero3 / tokens) * 100, "%"),
            ("batch of all GPUs", tokens * micro_batches * world_size / 1e6, "million tokens"),
        ],
        "plot": {
            "kind": "lines",
            "x": "tokens of a micro-batch on a GPU",
            "y": "communication over computing",
            "series": [(name, xs, [least_tokens / x for x in xs]) for name, least_tokens in series],
            "level": ("all hidden below 1", 1.0),
            "at": tokens,
        },
    }


def _waiting(ratio):
    """Of the computing beside it; the first and the last piece, which nothing hides, not counted."""
    return max(0.0, ratio - 1)


def which_all_reduce(world_size: int, size: float, alpha: float, bandwidth: float) -> dict:
    """Seconds of four algorithms for an all-reduce of ``size`` bytes, and the sizes from which on another is fastest.

    A message takes ``alpha`` seconds, and each rank sends and receives ``bandwidth`` bytes a second, to and from any
    other at full rate. The tree is cut into the best number of pieces for each size. Reducing is free.
    """
    ranks(world_size)
    positive(size=size, alpha=alpha, bandwidth=bandwidth)
    fixed = [f(world_size) for f in (ring_all_reduce, recursive_doubling_all_reduce, rabenseifner_all_reduce)]
    beta = 1 / bandwidth

    def seconds(at):
        ring, doubling, halving = [alpha_beta.seconds(each, at, alpha, beta) for each in fixed]
        pieces = alpha_beta.best_chunks(double_binary_tree_all_reduce, world_size, at, alpha, beta)
        tree = alpha_beta.seconds(double_binary_tree_all_reduce(world_size, pieces), at, alpha, beta)
        return ring, tree, doubling, halving

    xs = _geometric(1e3, 1e10, 22)
    times = [seconds(x) for x in xs]
    here = seconds(size)
    fastest = ALL_REDUCES[_first(here)]
    changes = _changes(seconds, xs, times)
    rows = [(name, time * 1e3, "ms") for name, time in zip(ALL_REDUCES, here)]  # noqa: B905
    if changes:
        rows.append((f"{ALL_REDUCES[_first(times[0])]} is fastest below", changes[0][0] / 1e6, "MB"))
    rows += [(f"{ALL_REDUCES[since]} is fastest from", at / 1e6, "MB") for at, since in changes]
    return {
        "verdict": f"Fastest here: {fastest}." if world_size > 1 else "One rank has nothing to send.",
        "answer": fastest,
        "unit": "",
        "rows": rows,
        "plot": {
            "kind": "lines",
            "x": "MB to reduce",
            "y": "milliseconds",
            "series": [
                (name, [x / 1e6 for x in xs], [time[i] * 1e3 for time in times]) for i, name in enumerate(ALL_REDUCES)
            ],
            "level": None,
            "at": size / 1e6,
        },
    }


def what_a_run_costs(
    params: float, tokens: float, gpu: str, gpus: int, mfu: float, dollars_per_gpu_hour: float
) -> dict:
    """Days, GPU-hours and dollars of a training run, by ``throughput.run_cost``: 6 FLOP a parameter and token."""
    peak = hardware.peak_flops(gpu)
    cost = throughput.run_cost(params, tokens, gpus, peak, mfu, dollars_per_gpu_hour)
    xs = _geometric(8.0, 65536.0, 14)
    return {
        "verdict": f"{_within(cost['days'])}, if nothing fails.",
        "answer": cost["days"],
        "unit": "days",
        "rows": [
            ("days", cost["days"], "days"),
            ("GPU-hours", cost["gpu_hours"], "hours"),
            ("dollars", cost["dollars"], "$"),
            ("arithmetic", cost["exaflop"], "EFLOP"),
            ("tokens a second of a GPU", cost["tokens_per_second_per_gpu"], "tokens/s"),
            ("tokens a parameter", tokens / params, ""),
        ],
        "plot": {
            "kind": "lines",
            "x": "GPUs",
            "y": "days",
            "series": [
                ("at this MFU", xs, [cost["days"] * gpus / x for x in xs]),
                ("at the peak", xs, [cost["days"] * mfu * gpus / x for x in xs]),
            ],
            "level": None,
            "at": float(gpus),
        },
    }


def _within(days):
    for most, words in ((1, "Less than a day"), (7, "Less than a week"), (31, "Less than a month"), (365, "Months")):
        if days <= most:
            return words
    return "More than a year"


def _part_of_one(name, value):
    if not 0 < value <= 1:
        raise ValueError(f"{name} is {value}; give a part, above 0 and at most 1 (40 % is 0.4)")


def _geometric(low, high, count):
    """``count`` numbers from ``low`` to ``high``, each the same factor above the one before."""
    return [low * (high / low) ** (i / (count - 1)) for i in range(count)]


def _first(times):
    """The index of the least; of those equal but for rounding, the first."""
    least = min(times)
    return [time <= least * (1 + 1e-9) for time in times].index(True)


def _changes(seconds, sizes, times):
    """``(size, index)``, in order: from ``size`` bytes on, another algorithm is fastest. ``times`` are at ``sizes``."""
    found, low = [], sizes[0]
    fastest = _first(times[0])
    for high, there in zip(sizes, times):  # noqa: B905  (MicroPython has no strict=)
        while _first(there) != fastest:
            until, since = low, high
            for _ in range(20):  # to a millionth
                middle = (until + since) / 2
                if _first(seconds(middle)) == fastest:
                    until = middle
                else:
                    since = middle
            low, fastest = since, _first(seconds(since))
            found.append((since, fastest))
        low = high
    return found
