"""How many times less is sent when gradients are compressed, and the bytes that each rank sends in a step.

>>> round(one_bit_adam_volume_reduction(warmup_fraction=0.15), 1)
4.9
>>> round(powersgd_compression_ratio(resnet18_cifar10_shapes(), rank=2))
136
>>> top_k_bytes(1000, world_size=4, ratio=0.01)[0], dense_bytes(1000, world_size=4)[0]
(240, 6000)

The functions of bytes return a list of whole numbers, one for each of N ranks: chunks of uneven sizes make ranks send
unequally. Indices, packed bits and scales are counted. Gradients are fp32. An all-reduce or all-gather is a ring, and
an all-to-all sends each chunk straight to its rank.

A travel compresses each vector of gradients on its own, so call these for each vector and add.
"""

import math

from ringzero.costs.page.inputs import positive, ranks

VALUE = 4  # bytes of an fp32 number
INDEX = 4  # bytes of an int32 index


def one_bit_adam_volume_reduction(warmup_fraction: float) -> float:
    """1 / (w + (1-w)/16): the warm-up sends all bits, the rest of the training one of each (Tang et al. 2021).

    ``warmup_fraction`` is between 0 and 1; an uncompressed gradient has 16 bits.
    """
    if not 0 <= warmup_fraction <= 1:
        raise ValueError(f"warmup_fraction is {warmup_fraction}; give the part of the steps, 0 to 1")
    return 1 / (warmup_fraction + (1 - warmup_fraction) / 16)


def powersgd_compression_ratio(shapes: list[tuple[int, ...]], rank: int) -> float:
    """Gradient values over values sent (Vogels et al. 2019). ``shapes``: the shape of each parameter.

    A parameter of two or more dimensions is a matrix (first dimension x all others); PowerSGD sends its two factors,
    rank (m + n) values, of no higher rank than the matrix can have. Vectors are sent whole.
    """
    _check_rank(rank)
    return sum(map(math.prod, shapes)) / sum(_sent(shape, rank) for shape in shapes)


def kept(numel: int, ratio: float) -> int:
    """How many of ``numel`` values top-k and random-k send: ceil(ratio numel), so at least 1.

    ``ratio`` is above 0 and at most 1. The rounding error of ``ratio * numel`` adds no value:

    >>> kept(100, 0.07), math.ceil(0.07 * 100), kept(10, 0.01)
    (7, 8, 1)
    """
    positive(numel=numel)
    if not isinstance(ratio, (int, float)) or not 0 < ratio <= 1:
        raise ValueError(f"ratio is {ratio!r}; give the part of the values that is sent, above 0 and at most 1")
    return max(1, math.ceil(ratio * numel * (1 - 1e-12)))


def dense_bytes(numel: int, world_size: int) -> list[int]:
    """Bytes by rank of a ring all-reduce of ``numel`` fp32 values: 2(N-1)/N of the buffer where chunks are equal.

    Rank r sends all chunks but its own while the sums form, and all but the next rank's while they are handed round.

    >>> dense_bytes(10, world_size=3)
    [56, 52, 52]
    """
    positive(numel=numel)
    return [VALUE * sent for sent in _there_and_back(numel, world_size)]


def top_k_bytes(numel: int, world_size: int, ratio: float) -> list[int]:
    """Top-k: an all-gather of k fp32 values and their k int32 indices, 8 k (N-1) bytes a rank (Lin et al. 2018)."""
    return [(ranks(world_size) - 1) * kept(numel, ratio) * (VALUE + INDEX)] * world_size


def random_k_bytes(numel: int, world_size: int, ratio: float) -> list[int]:
    """Random-k: a ring all-reduce of k fp32 values. All ranks draw the same indices, so no index travels.

    >>> random_k_bytes(1000, world_size=4, ratio=0.01)  # top-k sends 240
    [60, 60, 60, 60]
    """
    return dense_bytes(kept(numel, ratio), world_size)


def qsgd_message_bytes(numel: int, bits: int, block: int = 256) -> int:
    """A rank's quantised gradient: ``bits`` a value, packed, and an fp32 norm for each ``block`` values.

    ``bits`` count the sign, so they are at least 2.

    >>> qsgd_message_bytes(1000, bits=4)
    516
    """
    positive(numel=numel, block=block)
    if bits not in range(2, 33):
        raise ValueError(f"bits is {bits}; give a whole number from 2 (a sign and a level) to 32")
    return -(-numel * bits // 8) + VALUE * -(-numel // block)


def qsgd_bytes(numel: int, world_size: int, bits: int, block: int = 256) -> list[int]:
    """QSGD: an all-gather of everyone's quantised gradient, N-1 messages a rank (Alistarh et al. 2017)."""
    return [(ranks(world_size) - 1) * qsgd_message_bytes(numel, bits, block)] * world_size


def sign_bytes(numel: int, world_size: int) -> list[int]:
    """signSGD with majority vote: one bit a value, packed (Bernstein et al. 2019).

    Each rank counts the votes on one chunk of the packed bytes, which an all-to-all brings it. An all-gather hands the
    verdicts round, again one bit a value. Each chunk has an fp32 weight with it, both ways. Chunks are of one size, the
    last ones filled up.

    >>> sign_bytes(1000, world_size=4)  # 125 bytes of bits, so 32 in a chunk; 36 with the weight
    [216, 216, 216, 216]
    """
    positive(numel=numel)
    n = ranks(world_size)
    return [2 * (n - 1) * (VALUE + -(-numel // (8 * n)))] * n


def one_bit_adam_bytes(numel: int, world_size: int, warmup: bool = False) -> list[int]:
    """1-bit Adam: in the warm-up a ring all-reduce of the gradient, then the momentum's signs (Tang et al. 2021).

    The second phase sends what ``sign_bytes`` counts.

    >>> one_bit_adam_bytes(1000, world_size=4, warmup=True)[0], one_bit_adam_bytes(1000, world_size=4)[0]
    (6000, 216)
    """
    return dense_bytes(numel, world_size) if warmup else sign_bytes(numel, world_size)


def powersgd_bytes(shapes: list[tuple[int, ...]], world_size: int, rank: int) -> list[int]:
    """PowerSGD: a ring all-reduce of all left factors and all vectors, and one of all right factors, in fp32.

    ``shapes`` and ``rank`` (of the matrices) are as for ``powersgd_compression_ratio``.

    >>> powersgd_bytes([(10, 6), (10,)], world_size=2, rank=2)  # 20, 12 and 10 values
    [168, 168]
    """
    _check_rank(rank)
    left, right = 0, 0
    for shape in shapes:
        if len(shape) < 2:
            left += math.prod(shape)
        else:
            rows, columns = shape[0], math.prod(shape[1:])
            left += rows * _factor_rank(rows, columns, rank)
            right += columns * _factor_rank(rows, columns, rank)
    sent = [_there_and_back(numel, world_size) for numel in (left, right)]
    return [VALUE * sum(of_one[r] for of_one in sent) for r in range(world_size)]


def resnet18_cifar10_shapes() -> list[tuple[int, ...]]:
    """The shapes of ResNet-18's parameters, with the 3 x 3 first convolution used on CIFAR-10 (He et al. 2016)."""
    shapes, channels = _convolution(3, 64, 3), 64
    for width in (64, 128, 256, 512):
        for _ in range(2):
            shapes += _convolution(channels, width, 3) + _convolution(width, width, 3)
            if channels != width:  # the shortcut changes shape too
                shapes += _convolution(channels, width, 1)
            channels = width
    return shapes + [(10, channels), (10,)]


def _convolution(inputs, outputs, kernel):
    """Shapes of a convolution without a bias, and of the BatchNorm that follows."""
    return [(outputs, inputs, kernel, kernel), (outputs,), (outputs,)]


def _sent(shape, rank):
    if len(shape) < 2:
        return math.prod(shape)
    rows, columns = shape[0], math.prod(shape[1:])
    return _factor_rank(rows, columns, rank) * (rows + columns)


def _check_rank(rank):
    if not rank >= 1:
        raise ValueError(f"rank is {rank}; give at least 1")


def _factor_rank(rows, columns, rank):
    return min(rank, rows, columns)


def _there_and_back(size, world_size):
    """By rank, what it sends of a buffer of ``size``: all chunks but its own, then all but the next rank's."""
    n = ranks(world_size)
    chunks = [(r + 1) * size // n - r * size // n for r in range(n)]
    return [2 * size - chunks[r] - chunks[(r + 1) % n] for r in range(n)]
