"""How many times less is sent when gradients are compressed.

>>> round(one_bit_adam_volume_reduction(warmup_fraction=0.15), 1)
4.9
>>> round(powersgd_compression_ratio(resnet18_cifar10_shapes(), rank=2))
136
"""


def one_bit_adam_volume_reduction(warmup_fraction: float, bits: float = 16) -> float:
    """1 / (w + (1-w)/16): the warm-up sends all bits, the rest of the training one of each (Tang et al. 2021).

    ``warmup_fraction`` is between 0 and 1; ``bits`` are those of an uncompressed gradient.
    """
    if not 0 <= warmup_fraction <= 1:
        raise ValueError(f"warmup_fraction is {warmup_fraction}; give the part of the steps, 0 to 1")
    if not bits >= 1:
        raise ValueError(f"bits is {bits}; an uncompressed gradient has at least 1")
    return 1 / (warmup_fraction + (1 - warmup_fraction) / bits)


def powersgd_compression_ratio(shapes: list[tuple[int, ...]], rank: int) -> float:
    """Gradient values over values sent (Vogels et al. 2019). ``shapes``: the shape of each parameter.

    A parameter of two or more dimensions is a matrix (first dimension x all others); PowerSGD sends its two factors,
    rank (m + n) values, of no higher rank than the matrix can have. Vectors are sent whole.
    """
    if not rank >= 1:
        raise ValueError(f"rank is {rank}; give at least 1")
    return sum([_numel(shape) for shape in shapes]) / sum([_sent(shape, rank) for shape in shapes])


def resnet18_cifar10_shapes(classes: int = 10) -> list[tuple[int, ...]]:
    """The shapes of ResNet-18's parameters, with the 3 x 3 first convolution used on CIFAR-10 (He et al. 2016)."""
    shapes, channels = _convolution(3, 64, 3), 64
    for width in (64, 128, 256, 512):
        for _ in range(2):
            shapes += _convolution(channels, width, 3) + _convolution(width, width, 3)
            if channels != width:  # the shortcut changes shape too
                shapes += _convolution(channels, width, 1)
            channels = width
    return shapes + [(classes, channels), (classes,)]


def _convolution(inputs, outputs, kernel):
    """Shapes of a convolution without a bias, and of the BatchNorm that follows."""
    return [(outputs, inputs, kernel, kernel), (outputs,), (outputs,)]


def _numel(shape):
    numel = 1
    for size in shape:
        numel *= size
    return numel


def _sent(shape, rank):
    if len(shape) < 2:
        return _numel(shape)
    rows, columns = shape[0], _numel(shape[1:])
    return min(rank, rows, columns) * (rows + columns)
