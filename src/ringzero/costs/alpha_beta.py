"""What a collective costs on N ranks, in the alpha-beta-gamma model.

A message of S bytes takes ``alpha + S * beta`` seconds: alpha is the latency in seconds, beta the seconds a byte
takes (one over the bandwidth), and reducing S bytes takes ``S * gamma``. Every rank has one link in and one out.
Hockney 1994; the formulas for whole collectives follow Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005).

Each algorithm's cost is a triple of coefficients: how many alphas, how many times S*beta, how many times S*gamma.
"""

from math import sqrt


def ring_all_reduce_coefficients(world_size):
    """2(N-1) messages; 2(N-1)/N of the buffer sent, (N-1)/N reduced, by each rank."""
    n = _ranks(world_size)
    return 2 * (n - 1), 2 * (n - 1) / n, (n - 1) / n


def ring_reduce_scatter_coefficients(world_size):
    n = _ranks(world_size)
    return n - 1, (n - 1) / n, (n - 1) / n


def ring_all_gather_coefficients(world_size):
    n = _ranks(world_size)
    return n - 1, (n - 1) / n, 0.0


def flat_reduce_coefficients(world_size):
    """The root takes in N-1 whole buffers, one after another."""
    n = _ranks(world_size)
    return n - 1, float(n - 1), float(n - 1)


def flat_broadcast_coefficients(world_size):
    n = _ranks(world_size)
    return n - 1, float(n - 1), 0.0


def flat_all_reduce_coefficients(world_size):
    """Reduce to the root, then broadcast from it."""
    n = _ranks(world_size)
    return 2 * (n - 1), 2.0 * (n - 1), float(n - 1)


def ring_broadcast_coefficients(world_size, chunks=1):
    """K pieces through a pipe of N-1 links: N-2+K rounds of S/K bytes."""
    n = _ranks(world_size)
    if chunks < 1:
        raise ValueError(f"chunks is {chunks}; cut the buffer into at least 1")
    rounds = n - 2 + chunks if n > 1 else 0
    return rounds, rounds / chunks, 0.0


def seconds(coefficients, size, alpha, beta, gamma=0.0):
    """Price a triple of coefficients for a buffer of ``size`` bytes.

    >>> seconds(ring_all_reduce_coefficients(4), 64e6, alpha=10e-6, beta=1e-9)
    0.09606
    """
    messages, sent, reduced = coefficients
    return messages * alpha + sent * size * beta + reduced * size * gamma


def best_broadcast_chunks(world_size, size, alpha, beta):
    """The number of pieces K (a real number) that makes the pipelined ring broadcast fastest.

    sqrt((N-2) S beta / alpha), from (N-2+K)(alpha + S beta / K): more pieces fill the pipe sooner, at an alpha each.
    """
    n = _ranks(world_size)
    return max(1.0, sqrt(max(n - 2, 0) * size * beta / alpha))


def all_reduce_lower_bound(world_size):
    """The least any all-reduce must send from each rank, in buffer sizes: 2(N-1)/N (Patarasuk & Yuan 2009)."""
    n = _ranks(world_size)
    return 2 * (n - 1) / n


BUS_BANDWIDTH_FACTORS = {  # nccl-tests, doc/PERFORMANCE.md: how much crosses a rank's link for each byte of the buffer
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "gather": lambda n: (n - 1) / n,
    "scatter": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
    "sendrecv": lambda n: 1.0,
}


def bus_bandwidth_factor(collective, world_size):
    """busbw / algbw as nccl-tests defines them. It is 1 for two ranks' all-reduce, so two ranks cannot test it."""
    n = _ranks(world_size)
    if collective not in BUS_BANDWIDTH_FACTORS:
        raise ValueError(f"collective is {collective}; it is one of {', '.join(BUS_BANDWIDTH_FACTORS)}")
    return BUS_BANDWIDTH_FACTORS[collective](n)


def algorithm_bandwidth(size, elapsed):
    """Bytes a second the caller sees: the whole buffer of ``size`` bytes in ``elapsed`` seconds (nccl-tests)."""
    return size / elapsed


def bus_bandwidth(collective, world_size, size, elapsed):
    """Bytes a second each rank's link must have carried: comparable with the hardware's peak, whatever N."""
    return algorithm_bandwidth(size, elapsed) * bus_bandwidth_factor(collective, world_size)


def fit_alpha_beta(coefficients, sizes, times):
    """``(alpha, beta)`` that best explain ``times`` (s) measured at ``sizes`` (bytes), for these coefficients.

    Least squares on the relative error, so that a 64 KiB row counts as much as a 64 MiB one.
    Raises ValueError for fewer than two different sizes.
    """
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


def _ranks(world_size):
    if world_size < 1:
        raise ValueError(f"world_size is {world_size}; give at least 1 rank")
    return world_size
