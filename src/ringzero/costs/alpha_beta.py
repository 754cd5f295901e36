"""What a collective costs on N ranks, in the alpha-beta-gamma model.

A message of S bytes takes ``alpha + S * beta`` seconds: alpha is the latency in seconds, beta the seconds a byte
takes (one over the bandwidth), and reducing S bytes takes ``S * gamma``. Every rank has one link in and one out.
Hockney 1994; the formulas for whole collectives follow Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005).

Each algorithm's cost is a triple of coefficients: how many alphas, how many times S*beta, how many times S*gamma.
"""

from math import sqrt


def ring_all_reduce_coefficients(world_size):
    """2(N-1) messages; 2(N-1)/N of the buffer sent, (N-1)/N reduced, by each rank."""
    return _both(ring_reduce_scatter_coefficients(world_size), ring_all_gather_coefficients(world_size))


def ring_reduce_scatter_coefficients(world_size):
    return _reducing(ring_all_gather_coefficients(world_size))


def ring_all_gather_coefficients(world_size):
    n = _ranks(world_size)
    return n - 1, (n - 1) / n, 0.0


def ring_broadcast_coefficients(world_size, chunks=1):
    """K pieces through a pipe of N-1 links: N-2+K rounds of S/K bytes."""
    n = _ranks(world_size)
    return _pieces(n - 2 + chunks if n > 1 else 0, chunks)


def ring_reduce_coefficients(world_size, chunks=1):
    return _reducing(ring_broadcast_coefficients(world_size, chunks))


def flat_broadcast_coefficients(world_size):
    """The root sends N-1 whole buffers, one after another."""
    n = _ranks(world_size)
    return n - 1, float(n - 1), 0.0


def flat_reduce_coefficients(world_size):
    return _reducing(flat_broadcast_coefficients(world_size))


def flat_all_reduce_coefficients(world_size):
    """Reduce to the root, then broadcast from it."""
    return _both(flat_reduce_coefficients(world_size), flat_broadcast_coefficients(world_size))


def flat_scatter_coefficients(world_size):
    return ring_all_gather_coefficients(world_size)


def flat_gather_coefficients(world_size):
    return ring_all_gather_coefficients(world_size)


def flat_all_gather_coefficients(world_size):
    """Gather to the root, which then sends each rank the N-1 chunks of the others."""
    messages, sent, _ = flat_gather_coefficients(world_size)
    return 2 * messages, sent + messages * sent, 0.0


def flat_reduce_scatter_coefficients(world_size):
    """Reduce to the root, then scatter."""
    return _both(flat_reduce_coefficients(world_size), flat_scatter_coefficients(world_size))


def flat_all_to_all_coefficients(world_size):
    """To the root and out again, N-1 chunks of S/N for each rank."""
    n = _ranks(world_size)
    return 2 * (n - 1), 2 * (n - 1) * (n - 1) / n, 0.0


def flat_barrier_coefficients(world_size):
    n = _ranks(world_size)
    return 2 * (n - 1), 0.0, 0.0


def binomial_broadcast_coefficients(world_size):
    """ceil(log2 N) rounds of the whole buffer."""
    depth = _log2(world_size)
    return depth, float(depth), 0.0


def binomial_reduce_coefficients(world_size):
    return _reducing(binomial_broadcast_coefficients(world_size))


def binomial_all_reduce_coefficients(world_size):
    return _both(binomial_reduce_coefficients(world_size), binomial_broadcast_coefficients(world_size))


def binomial_scatter_coefficients(world_size):
    """The root sends half the chunks, a quarter, ...: N-1 of N in ceil(log2 N) rounds."""
    return _log2(world_size), (world_size - 1) / world_size, 0.0


def binomial_gather_coefficients(world_size):
    return binomial_scatter_coefficients(world_size)


def scatter_ring_broadcast_coefficients(world_size):
    """Binomial scatter, then ring all-gather (van de Geijn): 2(N-1)/N of the buffer instead of log2 N."""
    return _both(binomial_scatter_coefficients(world_size), ring_all_gather_coefficients(world_size))


def scatter_bruck_broadcast_coefficients(world_size):
    return _both(binomial_scatter_coefficients(world_size), bruck_all_gather_coefficients(world_size))


def binary_tree_broadcast_coefficients(world_size, chunks=1):
    """K pieces, one every other round since a rank has two children to send to; the last leaf is about 2 log2 N off."""
    n = _ranks(world_size)
    # Position m-1 of the tree is as many steps down as m has bits after the first, and each 1 among them is a right
    # turn, which takes a round more. The latest is n itself or the number below n that ends in the most 1s.
    latest, low = _bits_and_ones(n), 1
    while low <= n:
        latest = max(latest, _bits_and_ones(n // low * low - 1))
        low *= 2
    return _pieces(latest - 2 + min(n - 1, 2) * (chunks - 1) if n > 1 else 0, chunks)


def binary_tree_reduce_coefficients(world_size, chunks=1):
    return _reducing(binary_tree_broadcast_coefficients(world_size, chunks))


def binary_tree_all_reduce_coefficients(world_size, chunks=1):
    down = binary_tree_broadcast_coefficients(world_size, chunks)
    return _both(_reducing(down), down)


def double_binary_tree_broadcast_coefficients(world_size, chunks=1):
    """Each half of the buffer in K pieces down a tree of its own, the trees taking turns: rounds of S/2K bytes.

    The first piece takes 2 ceil(log2 N) - 1 rounds, or one more, to reach everyone; the rest follow, two a round.
    """
    n, depth = _ranks(world_size), _log2(world_size)
    fill = 2 * depth - 1 + int(n % 4 == 3 or n == 2**depth)
    return _pieces(fill + 2 * (chunks - 1) if n > 1 else 0, chunks, 2 * chunks)


def double_binary_tree_reduce_coefficients(world_size, chunks=1):
    return _reducing(double_binary_tree_broadcast_coefficients(world_size, chunks))


def double_binary_tree_all_reduce_coefficients(world_size, chunks=1):
    down = double_binary_tree_broadcast_coefficients(world_size, chunks)
    return _both(_reducing(down), down)


def recursive_doubling_all_reduce_coefficients(world_size):
    """log2 N exchanges of the whole buffer; two more where N is no power of two."""
    core = _power_of_two_up_to(world_size)
    rounds = _log2(core)
    return _with_the_rest((rounds, float(rounds), float(rounds)), world_size, core)


def rabenseifner_all_reduce_coefficients(world_size):
    """Halves, quarters, ... and back: the ring's bytes in 2 log2 N rounds; two whole buffers more for the rest."""
    core = _power_of_two_up_to(world_size)
    return _with_the_rest((2 * _log2(core), 2 * (core - 1) / core, (core - 1) / core), world_size, core)


def recursive_doubling_all_gather_coefficients(world_size):
    """1/N, then 2/N, 4/N, ... of the buffer. N is a power of two."""
    if _power_of_two_up_to(world_size) != world_size:
        raise ValueError(f"world_size is {world_size}; recursive doubling takes a power of two")
    return bruck_all_gather_coefficients(world_size)


def recursive_halving_reduce_scatter_coefficients(world_size):
    return _reducing(recursive_doubling_all_gather_coefficients(world_size))


def bruck_all_gather_coefficients(world_size):
    """(N-1)/N of the buffer in ceil(log2 N) rounds, any N."""
    return _log2(world_size), (world_size - 1) / world_size, 0.0


def bruck_reduce_scatter_coefficients(world_size):
    return _reducing(bruck_all_gather_coefficients(world_size))


def bruck_all_reduce_coefficients(world_size):
    return _both(bruck_reduce_scatter_coefficients(world_size), bruck_all_gather_coefficients(world_size))


def dissemination_barrier_coefficients(world_size):
    return _log2(world_size), 0.0, 0.0


def pairwise_all_to_all_coefficients(world_size):
    """S is what each rank brings: N chunks, of which it keeps one."""
    return ring_all_gather_coefficients(world_size)


def bruck_all_to_all_coefficients(world_size):
    """In each round the chunks whose distance has that power of two in it: half of them, if N is a power of two."""
    n, moved, low = _ranks(world_size), 0, 1
    while low < n:
        moved += n // (2 * low) * low + max(0, n % (2 * low) - low)
        low *= 2
    return _log2(n), moved / n, 0.0


def hierarchical_all_reduce_coefficients(nodes, ranks_per_node):
    """Binomial reduce inside each node, ring among the nodes' leaders, binomial broadcast inside."""
    down, across = binomial_broadcast_coefficients(ranks_per_node), ring_all_reduce_coefficients(nodes)
    return _both(_both(_reducing(down), across), down)


def hierarchical_scattered_all_reduce_coefficients(nodes, ranks_per_node):
    """The same messages as a 2-D torus with a row for each node."""
    return torus_2d_all_reduce_coefficients(nodes, ranks_per_node)


def torus_2d_all_reduce_coefficients(rows, columns):
    """The ring's bytes, 2(N-1)/N, in 2(columns-1) + 2(rows-1) rounds."""
    n = _ranks(rows) * _ranks(columns)
    return 2 * (rows + columns - 2), 2 * (n - 1) / n, (n - 1) / n


def torus_3d_all_reduce_coefficients(planes, rows, columns):
    n = _ranks(planes) * _ranks(rows) * _ranks(columns)
    return 2 * (planes + rows + columns - 3), 2 * (n - 1) / n, (n - 1) / n


def mesh_2d_all_reduce_coefficients(rows, columns):
    """A whole ring all-reduce along the rows, then one along the columns: about 4S, where a torus needs 2S."""
    return _both(ring_all_reduce_coefficients(columns), ring_all_reduce_coefficients(rows))


def parameter_server_all_reduce_coefficients(world_size, servers=1):
    """N-1 pushes to each server and N-1 pulls from it, of 1/servers of the buffer."""
    n = _ranks(world_size)
    if not 1 <= servers <= n:
        raise ValueError(f"servers is {servers}; with {n} ranks it is 1 to {n}")
    return 2 * (n - 1), 2 * (n - 1) / servers, (n - 1) / servers


def sharded_parameter_server_all_reduce_coefficients(world_size):
    return parameter_server_all_reduce_coefficients(world_size, world_size)


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


def best_chunks(coefficients, world_size, size, alpha, beta):
    """The number of pieces (a real number) that makes a pipelined algorithm fastest.

    ``coefficients(world_size, chunks)`` is its formula, such as ``double_binary_tree_all_reduce_coefficients``. A + PK
    rounds of S/CK bytes take (A + PK)(alpha + S beta / CK), least at K = sqrt(A S beta / (P C alpha)).

    >>> round(best_chunks(ring_broadcast_coefficients, 8, 1e9, 5e-6, 1e-11), 1)
    109.5
    """
    once, twice = coefficients(world_size, 1), coefficients(world_size, 2)
    each = twice[0] - once[0]
    fill = once[0] - each
    if fill <= 0:
        return 1.0
    return max(1.0, sqrt(fill * size * beta * once[1] / (each * once[0] * alpha)))


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


def _reducing(coefficients):
    """The same messages, backwards, what arrives being added: all that is sent is reduced."""
    messages, sent, _ = coefficients
    return messages, sent, sent


def _both(first, then):
    return tuple(a + b for a, b in zip(first, then))  # noqa: B905  (MicroPython has no strict=)


def _pieces(rounds, chunks, of_the_buffer=None):
    """``rounds`` of one piece each, of K that make up the buffer."""
    if chunks < 1:
        raise ValueError(f"chunks is {chunks}; cut the buffer into at least 1")
    return rounds, rounds / (of_the_buffer or chunks), 0.0


def _with_the_rest(coefficients, world_size, core):
    """The ranks beyond ``core`` first add their buffers to others', and are told the result at the end."""
    return _both(coefficients, (2, 2.0, 1.0)) if world_size > core else coefficients


def _log2(world_size):
    """Rounded up."""
    n, power = _ranks(world_size), 0
    while 2**power < n:
        power += 1
    return power


def _power_of_two_up_to(world_size):
    n, power = _ranks(world_size), 1
    while 2 * power <= n:
        power *= 2
    return power


def _bits_and_ones(number):
    """Binary digits of ``number``, a 1 counting twice."""
    count = 0
    while number:
        count, number = count + 1 + number % 2, number // 2
    return count


def _ranks(world_size):
    if world_size < 1:
        raise ValueError(f"world_size is {world_size}; give at least 1 rank")
    return world_size
