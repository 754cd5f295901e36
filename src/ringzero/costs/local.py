"""Local SGD, where ranks train alone for H steps and then average: bytes a step, on average and at most.

>>> low_communication_reduction(inner_steps=500)  # DiLoCo
500.0
>>> low_communication_reduction(inner_steps=100, bits_from=16, bits_to=4)  # Streaming DiLoCo
400.0
>>> average, peak = streaming_bytes(params=1e9, world_size=8, inner_steps=100, fragments=4)
>>> average / 1e9, peak / 1e9
(0.07, 1.75)

Bytes are those that one rank sends; an all-reduce sends 2(N-1)/N of the buffer. ValueError for fewer than 1 inner step.

Stich, "Local SGD converges fast and communicates little" (2019); Douillard et al., "DiLoCo" (2023) and "Streaming
DiLoCo" (2025).
"""

from ringzero.costs.page.inputs import known, positive, ranks
from ringzero.costs.two_level import payload_bytes

FORMATS = ((32, "fp32"), (16, "bf16"), (8, "int8"), (4, "int4"))  # bits -> its name in ``two_level.BITS``


def local_sgd_bytes(params: float, world_size: int, inner_steps: int, bits: float = 32) -> float:
    """Bytes a step, on average: an all-reduce of all parameters in ``bits`` each, once in ``inner_steps`` steps.

    2(N-1)/N params bits/8 / H. Local SGD averages the parameters, DiLoCo how far they moved; both are as large.
    One inner step is data parallelism.

    >>> [local_sgd_bytes(1e9, 8, inner_steps) / 1e9 for inner_steps in (1, 100, 500)]
    [7.0, 0.07, 0.014]
    """
    average, _ = streaming_bytes(params, world_size, inner_steps, 1, bits)
    return average


def streaming_bytes(
    params: float, world_size: int, inner_steps: int, fragments: int = 1, bits: float = 32
) -> tuple[float, float]:
    """``(average, peak)`` bytes a step where the model is averaged in equal ``fragments``, each in a step of its own.

    Every fragment is averaged once in ``inner_steps`` steps, so on average as much is sent as without fragments. The
    peak is one fragment, or several where there are more fragments than inner steps.
    """
    ranks(world_size)
    positive(params=params, bits=bits)
    _check_steps(inner_steps)
    if not fragments >= 1:
        raise ValueError(f"fragments is {fragments}; give at least 1")
    whole = 2 * (world_size - 1) / world_size * params * bits / 8
    return whole / inner_steps, whole / fragments * -(-fragments // inner_steps)


def outer_step_bytes(numel: int, world_size: int, bits: int = 32, block: int = 256) -> float:
    """Bytes that a rank sends to average ``numel`` values once, on average over the ranks, with scales and padding.

    32 bits: a ring all-reduce, 2(N-1)/N 4 numel. 16, 8 or 4 bits: N parts, of ceil(numel/N) values, are exchanged,
    summed in fp32, and the sums, in as few bits again, go to all: 2(N-1) messages. 8 and 4 bits have an fp32 scale for
    each ``block`` values.

    >>> [outer_step_bytes(1000, world_size=2, bits=bits) for bits in (32, 16, 8, 4)]
    [4000.0, 2000, 1016, 516]
    """
    ranks(world_size)
    positive(numel=numel, block=block)
    known(FORMATS, bits, "bits")
    if bits == 32:
        return 2 * (world_size - 1) / world_size * 4 * numel
    return 2 * (world_size - 1) * payload_bytes(-(-numel // world_size), dict(FORMATS)[bits], block)


def streaming_bandwidth(
    params: float,
    world_size: int,
    inner_steps: int,
    step_seconds: float,
    fragments: int = 1,
    bits: float = 32,
    overlap_steps: int = 1,
) -> float:
    """Bytes a second that hide a fragment's all-reduce behind the next ``overlap_steps`` steps of computation.

    The average is used that many steps late. At most inner_steps / fragments, so that only one fragment travels.

    >>> streaming_bandwidth(1e9, 8, inner_steps=100, step_seconds=0.5, fragments=20, bits=4, overlap_steps=5) / 1e6
    17.5
    """
    positive(step_seconds=step_seconds, overlap_steps=overlap_steps)
    _, peak = streaming_bytes(params, world_size, inner_steps, fragments, bits)
    if overlap_steps > max(1, inner_steps / fragments):
        raise ValueError(
            f"overlap_steps is {overlap_steps}; with {inner_steps} inner steps and {fragments} fragments the next one "
            f"follows after {inner_steps / fragments}"
        )
    return peak / (overlap_steps * step_seconds)


def low_communication_reduction(inner_steps: int, bits_from: float = 32, bits_to: float = 32) -> float:
    """How many times less is sent than by data parallelism in ``bits_from``: H bits_from / bits_to."""
    _check_steps(inner_steps)
    positive(bits_from=bits_from, bits_to=bits_to)
    return inner_steps * bits_from / bits_to


def _check_steps(inner_steps):
    if not inner_steps >= 1:
        raise ValueError(f"inner_steps is {inner_steps}; ranks average after at least 1 step")
