"""Seconds, bandwidths and fits in the alpha-beta-gamma model.

A message of S bytes takes ``alpha + S * beta`` seconds: alpha is the latency in seconds, beta the seconds a byte takes
(one over the bandwidth). Reducing S bytes takes ``S * gamma``. Hockney 1994.

``coefficients`` below is a triple, as in the module of that name: the messages that follow each other, and how many
times the buffer is sent and reduced in them. ``size`` is the buffer in bytes.
"""

from math import sqrt

from ringzero.costs.page.inputs import known, positive, ranks


def seconds(
    coefficients: tuple[float, float, float], size: float, alpha: float, beta: float, gamma: float = 0.0
) -> float:
    """The time of an algorithm with these coefficients on a buffer of ``size`` bytes.

    >>> from ringzero.costs.page.coefficients import COEFFICIENTS
    >>> seconds(COEFFICIENTS["all_reduce"]["ring"](4), 64e6, alpha=10e-6, beta=1e-9)
    0.09606
    """
    messages, sent, reduced = coefficients
    return messages * alpha + sent * size * beta + reduced * size * gamma


def best_chunks(algorithm: object, world_size: int, size: float, alpha: float, beta: float) -> float:
    """The number of pieces (a real number) that makes a pipelined algorithm fastest.

    ``algorithm(world_size, chunks)`` gives its coefficients: an entry of ``COEFFICIENTS`` that takes ``chunks``. It
    takes A + PK rounds of S/CK bytes each, so (A + PK)(alpha + S beta / CK), least at K = sqrt(A S beta / (P C alpha)).

    >>> from ringzero.costs.page.coefficients import COEFFICIENTS
    >>> round(best_chunks(COEFFICIENTS["broadcast"]["ring"], 8, 1e9, 5e-6, 1e-11), 1)
    109.5
    """
    positive(size=size, alpha=alpha, beta=beta)
    # MicroPython has no typing.Callable.
    once, twice = algorithm(world_size, 1), algorithm(world_size, 2)  # type: ignore[operator]
    each = twice[0] - once[0]
    fill = once[0] - each
    if fill <= 0:
        return 1.0
    return max(1.0, sqrt(fill * size * beta * once[1] / (each * once[0] * alpha)))


def all_reduce_lower_bound(world_size: int) -> float:
    """The least any all-reduce must send from each rank, in buffer sizes: 2(N-1)/N (Patarasuk & Yuan 2009)."""
    n = ranks(world_size)
    return 2 * (n - 1) / n


BUS_BANDWIDTH_FACTORS = (  # nccl-tests, doc/PERFORMANCE.md: how much crosses a rank's link for each byte of the buffer
    ("all_reduce", lambda n: 2 * (n - 1) / n),
    ("reduce_scatter", lambda n: (n - 1) / n),
    ("all_gather", lambda n: (n - 1) / n),
    ("all_to_all", lambda n: (n - 1) / n),
    ("gather", lambda n: (n - 1) / n),
    ("scatter", lambda n: (n - 1) / n),
    ("broadcast", lambda n: 1.0),
    ("reduce", lambda n: 1.0),
    ("sendrecv", lambda n: 1.0),
)


def bus_bandwidth_factor(collective: str, world_size: int) -> float:
    """busbw / algbw as nccl-tests defines them. It is 1 for an all-reduce of two ranks, so two ranks cannot test it."""
    n = ranks(world_size)
    known(BUS_BANDWIDTH_FACTORS, collective, "collective")
    return dict(BUS_BANDWIDTH_FACTORS)[collective](n)


def algorithm_bandwidth(size: float, elapsed: float) -> float:
    """Bytes a second the caller sees: the whole buffer of ``size`` bytes in ``elapsed`` seconds (nccl-tests)."""
    positive(elapsed=elapsed)
    return size / elapsed


def bus_bandwidth(collective: str, world_size: int, size: float, elapsed: float) -> float:
    """Bytes a second each rank's link must have carried: comparable with the hardware's peak, whatever N."""
    return algorithm_bandwidth(size, elapsed) * bus_bandwidth_factor(collective, world_size)


def fit_alpha_beta(
    coefficients: tuple[float, float, float], sizes: list[float], times: list[float]
) -> tuple[float, float]:
    """``(alpha, beta)`` that best explain ``times`` (s) measured at ``sizes`` (bytes), for these coefficients.

    Least squares on the relative error, so that a 64 KiB row counts as much as a 64 MiB one.
    Raises ValueError for fewer than two different sizes, and for another number of times than of sizes.
    """
    if len(sizes) != len(times):
        raise ValueError(f"there are {len(sizes)} sizes and {len(times)} times; give one time for each size")
    if len(set(sizes)) < 2:
        raise ValueError(f"sizes are {list(sizes)}; two different sizes are needed to tell alpha from beta")
    messages, sent, _ = coefficients
    # Minimise sum((messages/t * alpha + sent*S/t * beta - 1)^2): the normal equations of two unknowns.
    aa = ab = bb = a1 = b1 = 0.0
    for size, elapsed in zip(sizes, times):  # noqa: B905  (MicroPython has no strict=)
        a, b = messages / elapsed, sent * size / elapsed
        aa, ab, bb, a1, b1 = aa + a * a, ab + a * b, bb + b * b, a1 + a, b1 + b
    determinant = aa * bb - ab * ab
    return (a1 * bb - b1 * ab) / determinant, (b1 * aa - a1 * ab) / determinant
