"""What each algorithm costs, in the alpha-beta-gamma model.

    COEFFICIENTS["all_reduce"]["ring"](8)                          (14, 1.75, 0.875)
    COEFFICIENTS["broadcast"]["ring"](8, chunks=100)               100 pieces follow each other

A cost is a triple: how many messages follow each other, how many times the buffer is sent in them, and how many times
it is reduced. ``alpha_beta.seconds`` turns the triple into a time. Every rank has one link in and one link out.

A function takes the number of ranks, then the options of the algorithm that change its cost, by the names they have in
``ringzero.collectives.ALGORITHMS``: ``chunks``, ``servers``, and ``shape``, the sides of the grid that the ranks form
(by default the most even one). All raise ValueError for fewer than 1 rank and for an option that does not fit.

Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005), and the papers named in ``ringzero.collectives``.
"""

from ringzero.costs.inputs import ranks

# ---- ring


def ring_all_reduce(world_size: int) -> tuple[float, float, float]:
    """2(N-1) messages; 2(N-1)/N of the buffer sent, (N-1)/N reduced, by each rank."""
    return _then(ring_reduce_scatter(world_size), ring_all_gather(world_size))


def ring_reduce_scatter(world_size: int) -> tuple[float, float, float]:
    """N-1 messages of S/N bytes, each reduced on arrival."""
    return _reducing(ring_all_gather(world_size))


def ring_all_gather(world_size: int) -> tuple[float, float, float]:
    """N-1 messages of S/N bytes."""
    n = ranks(world_size)
    return n - 1, (n - 1) / n, 0.0


def ring_broadcast(world_size: int, chunks: int = 1) -> tuple[float, float, float]:
    """K pieces through a pipe of N-1 links: N-2+K rounds of S/K bytes."""
    n = ranks(world_size)
    return _pieces(n - 2 + chunks if n > 1 else 0, chunks)


def ring_reduce(world_size: int, chunks: int = 1) -> tuple[float, float, float]:
    """The broadcast backwards."""
    return _reducing(ring_broadcast(world_size, chunks))


def bidirectional_ring_all_reduce(world_size: int) -> tuple[float, float, float]:
    """As the ring: both halves leave by the one link. With a link to each neighbour the bytes take half the time."""
    return ring_all_reduce(world_size)


# ---- everyone to everyone at once


def two_shot_all_reduce(world_size: int) -> tuple[float, float, float]:
    """The ring's bytes in two rounds. Messages that set out at once count one alpha."""
    _, sent, reduced = ring_all_reduce(world_size)
    return (2 if world_size > 1 else 0), sent, reduced


# ---- everything through one rank


def flat_broadcast(world_size: int) -> tuple[float, float, float]:
    """The root sends N-1 whole buffers, one after another."""
    n = ranks(world_size)
    return n - 1, float(n - 1), 0.0


def flat_reduce(world_size: int) -> tuple[float, float, float]:
    """The broadcast backwards."""
    return _reducing(flat_broadcast(world_size))


def flat_all_reduce(world_size: int) -> tuple[float, float, float]:
    """Reduce to the root, then broadcast from it."""
    return _then(flat_reduce(world_size), flat_broadcast(world_size))


def flat_scatter(world_size: int) -> tuple[float, float, float]:
    """The root sends N-1 chunks of S/N bytes, one after another."""
    return ring_all_gather(world_size)


def flat_gather(world_size: int) -> tuple[float, float, float]:
    """The scatter backwards; nothing is reduced."""
    return flat_scatter(world_size)


def flat_all_gather(world_size: int) -> tuple[float, float, float]:
    """Gather to the root, which then sends each rank the N-1 chunks of the others."""
    messages, sent, _ = flat_gather(world_size)
    return 2 * messages, sent + messages * sent, 0.0


def flat_reduce_scatter(world_size: int) -> tuple[float, float, float]:
    """Reduce to the root, then scatter."""
    return _then(flat_reduce(world_size), flat_scatter(world_size))


def flat_all_to_all(world_size: int) -> tuple[float, float, float]:
    """To the root and out again, N-1 chunks of S/N for each rank."""
    n = ranks(world_size)
    return 2 * (n - 1), 2 * (n - 1) * (n - 1) / n, 0.0


def flat_barrier(world_size: int) -> tuple[float, float, float]:
    """Every other rank reports to the root, which then answers each. The messages are empty."""
    return 2 * (ranks(world_size) - 1), 0.0, 0.0


# ---- trees


def binomial_broadcast(world_size: int) -> tuple[float, float, float]:
    """ceil(log2 N) rounds of the whole buffer."""
    depth = _log2(world_size)
    return depth, float(depth), 0.0


def binomial_reduce(world_size: int) -> tuple[float, float, float]:
    """The broadcast backwards."""
    return _reducing(binomial_broadcast(world_size))


def binomial_all_reduce(world_size: int) -> tuple[float, float, float]:
    """Reduce to one rank, then broadcast from it."""
    return _then(binomial_reduce(world_size), binomial_broadcast(world_size))


def binomial_scatter(world_size: int) -> tuple[float, float, float]:
    """The root sends half the chunks, a quarter, ...: N-1 of N in ceil(log2 N) rounds."""
    return _log2(world_size), (world_size - 1) / world_size, 0.0


def binomial_gather(world_size: int) -> tuple[float, float, float]:
    """The scatter backwards; nothing is reduced."""
    return binomial_scatter(world_size)


def scatter_ring_broadcast(world_size: int) -> tuple[float, float, float]:
    """Binomial scatter, then ring all-gather (van de Geijn): 2(N-1)/N of the buffer instead of log2 N."""
    return _then(binomial_scatter(world_size), ring_all_gather(world_size))


def scatter_bruck_broadcast(world_size: int) -> tuple[float, float, float]:
    """Binomial scatter, then Bruck's all-gather."""
    return _then(binomial_scatter(world_size), bruck_all_gather(world_size))


def binary_tree_broadcast(world_size: int, chunks: int = 1) -> tuple[float, float, float]:
    """K pieces, one every other round, because a rank sends each to two children. The last leaf is about 2 log2 N off.

    Count the ranks of the tree from 1, level by level. Rank m is one level down for each binary digit of m after the
    first. A digit 0 is a left child, served one round after its parent; a 1 is a right child, served two rounds after.
    The last to be served is rank N itself, or the rank below N whose number ends in the most ones.
    """
    n = ranks(world_size)
    latest, low = _digits_and_ones(n), 1
    while low <= n:
        latest = max(latest, _digits_and_ones(n // low * low - 1))
        low *= 2
    return _pieces(latest - 2 + min(n - 1, 2) * (chunks - 1) if n > 1 else 0, chunks)


def binary_tree_reduce(world_size: int, chunks: int = 1) -> tuple[float, float, float]:
    """The broadcast backwards."""
    return _reducing(binary_tree_broadcast(world_size, chunks))


def binary_tree_all_reduce(world_size: int, chunks: int = 1) -> tuple[float, float, float]:
    """Reduce to the root of the tree, then broadcast from it."""
    return _then(binary_tree_reduce(world_size, chunks), binary_tree_broadcast(world_size, chunks))


def double_binary_tree_broadcast(world_size: int, chunks: int = 1) -> tuple[float, float, float]:
    """Each half of the buffer in K pieces down a tree of its own. The trees take turns, in rounds of S/2K bytes.

    The first piece takes 2 ceil(log2 N) - 1 rounds, or one more, to reach every rank; then two pieces follow a round.
    """
    n, depth = ranks(world_size), _log2(world_size)
    fill = 2 * depth - 1 + int(n % 4 == 3 or n == 2**depth)
    return _pieces(fill + 2 * (chunks - 1) if n > 1 else 0, chunks, trees=2)


def double_binary_tree_reduce(world_size: int, chunks: int = 1) -> tuple[float, float, float]:
    """The broadcast backwards."""
    return _reducing(double_binary_tree_broadcast(world_size, chunks))


def double_binary_tree_all_reduce(world_size: int, chunks: int = 1) -> tuple[float, float, float]:
    """Reduce to the roots of the trees, then broadcast from them."""
    return _then(double_binary_tree_reduce(world_size, chunks), double_binary_tree_broadcast(world_size, chunks))


# ---- partners at distances 1, 2, 4, ...


def recursive_doubling_all_reduce(world_size: int) -> tuple[float, float, float]:
    """log2 N exchanges of the whole buffer; two messages more where N is no power of two."""
    core = _power_of_two_up_to(world_size)
    rounds = _log2(core)
    return _with_the_rest((rounds, float(rounds), float(rounds)), world_size, core)


def rabenseifner_all_reduce(world_size: int) -> tuple[float, float, float]:
    """Halves, quarters, ... and back: the ring's bytes in 2 log2 N rounds.

    Where N is no power of two, two messages of the whole buffer more.
    """
    core = _power_of_two_up_to(world_size)
    return _with_the_rest((2 * _log2(core), 2 * (core - 1) / core, (core - 1) / core), world_size, core)


def recursive_doubling_all_gather(world_size: int) -> tuple[float, float, float]:
    """1/N, then 2/N, 4/N, ... of the buffer. Raises ValueError unless N is a power of two."""
    if _power_of_two_up_to(world_size) != world_size:
        raise ValueError(f"world_size is {world_size}; recursive doubling takes a power of two")
    return bruck_all_gather(world_size)


def recursive_halving_reduce_scatter(world_size: int) -> tuple[float, float, float]:
    """The all-gather backwards. Raises ValueError unless N is a power of two."""
    return _reducing(recursive_doubling_all_gather(world_size))


def bruck_all_gather(world_size: int) -> tuple[float, float, float]:
    """(N-1)/N of the buffer in ceil(log2 N) rounds, any N."""
    return _log2(world_size), (world_size - 1) / world_size, 0.0


def bruck_reduce_scatter(world_size: int) -> tuple[float, float, float]:
    """The all-gather backwards."""
    return _reducing(bruck_all_gather(world_size))


def bruck_all_reduce(world_size: int) -> tuple[float, float, float]:
    """Reduce-scatter, then all-gather."""
    return _then(bruck_reduce_scatter(world_size), bruck_all_gather(world_size))


def dissemination_barrier(world_size: int) -> tuple[float, float, float]:
    """ceil(log2 N) rounds of empty messages."""
    return _log2(world_size), 0.0, 0.0


# ---- all-to-all


def pairwise_all_to_all(world_size: int) -> tuple[float, float, float]:
    """N-1 messages of S/N bytes, where S is what each rank brings: N chunks, of which it keeps one."""
    return ring_all_gather(world_size)


def bruck_all_to_all(world_size: int) -> tuple[float, float, float]:
    """A chunk that must go j ranks further travels in round k if j has the binary digit 2^k.

    Where N is a power of two, half of the chunks travel in each of the log2 N rounds.
    """
    n, moved, low = ranks(world_size), 0, 1
    while low < n:
        moved += n // (2 * low) * low + max(0, n % (2 * low) - low)
        low *= 2
    return _log2(n), moved / n, 0.0


# ---- grids


def hierarchical_all_reduce(world_size: int, shape: tuple[int, int] | None = None) -> tuple[float, float, float]:
    """``shape`` is (nodes, ranks a node): binomial reduce in each node, ring among the leaders, binomial broadcast."""
    nodes, ranks_per_node = _grid(world_size, shape, 2)
    inside = binomial_reduce(ranks_per_node)
    return _then(_then(inside, ring_all_reduce(nodes)), binomial_broadcast(ranks_per_node))


def hierarchical_scattered_all_reduce(
    world_size: int, shape: tuple[int, int] | None = None
) -> tuple[float, float, float]:
    """``shape`` is (nodes, ranks a node). The messages are those of a 2-D torus with a row for each node."""
    return torus_2d_all_reduce(world_size, shape)


def torus_2d_all_reduce(world_size: int, shape: tuple[int, int] | None = None) -> tuple[float, float, float]:
    """``shape`` is (rows, columns). The ring's bytes, 2(N-1)/N, in 2(columns-1) + 2(rows-1) rounds."""
    return _torus(world_size, _grid(world_size, shape, 2))


def torus_3d_all_reduce(world_size: int, shape: tuple[int, int, int] | None = None) -> tuple[float, float, float]:
    """``shape`` is (planes, rows, columns). The ring's bytes in 2(side - 1) rounds for each side."""
    return _torus(world_size, _grid(world_size, shape, 3))


def mesh_2d_all_reduce(world_size: int, shape: tuple[int, int] | None = None) -> tuple[float, float, float]:
    """``shape`` is (rows, columns). A ring all-reduce along the rows, then one along the columns.

    About 4S bytes, where a torus needs 2S.
    """
    rows, columns = _grid(world_size, shape, 2)
    return _then(ring_all_reduce(columns), ring_all_reduce(rows))


# ---- parameter servers


def parameter_server_all_reduce(world_size: int, servers: int = 1) -> tuple[float, float, float]:
    """N-1 pushes to each server and N-1 pulls from it, of 1/servers of the buffer."""
    n = ranks(world_size)
    if not 1 <= servers <= n:
        raise ValueError(f"servers is {servers}; with {n} ranks it is 1 to {n}")
    return 2 * (n - 1), 2 * (n - 1) / servers, (n - 1) / servers


def sharded_parameter_server_all_reduce(world_size: int) -> tuple[float, float, float]:
    """Every rank serves a chunk."""
    return parameter_server_all_reduce(world_size, world_size)


COEFFICIENTS: dict[str, dict] = {  # collective -> algorithm -> function
    "all_reduce": {
        "ring": ring_all_reduce,
        "flat": flat_all_reduce,
        "binomial": binomial_all_reduce,
        "binary_tree": binary_tree_all_reduce,
        "double_binary_tree": double_binary_tree_all_reduce,
        "recursive_doubling": recursive_doubling_all_reduce,
        "rabenseifner": rabenseifner_all_reduce,
        "bruck": bruck_all_reduce,
        "hierarchical": hierarchical_all_reduce,
        "hierarchical_scattered": hierarchical_scattered_all_reduce,
        "torus_2d": torus_2d_all_reduce,
        "torus_3d": torus_3d_all_reduce,
        "mesh_2d": mesh_2d_all_reduce,
        "parameter_server": parameter_server_all_reduce,
        "sharded_parameter_server": sharded_parameter_server_all_reduce,
        "bidirectional_ring": bidirectional_ring_all_reduce,
        "two_shot": two_shot_all_reduce,
    },
    "reduce_scatter": {
        "ring": ring_reduce_scatter,
        "flat": flat_reduce_scatter,
        "recursive_halving": recursive_halving_reduce_scatter,
        "bruck": bruck_reduce_scatter,
    },
    "all_gather": {
        "ring": ring_all_gather,
        "flat": flat_all_gather,
        "recursive_doubling": recursive_doubling_all_gather,
        "bruck": bruck_all_gather,
    },
    "broadcast": {
        "ring": ring_broadcast,
        "flat": flat_broadcast,
        "binomial": binomial_broadcast,
        "scatter_ring": scatter_ring_broadcast,
        "scatter_bruck": scatter_bruck_broadcast,
        "binary_tree": binary_tree_broadcast,
        "double_binary_tree": double_binary_tree_broadcast,
    },
    "reduce": {
        "ring": ring_reduce,
        "flat": flat_reduce,
        "binomial": binomial_reduce,
        "binary_tree": binary_tree_reduce,
        "double_binary_tree": double_binary_tree_reduce,
    },
    "gather": {"flat": flat_gather, "binomial": binomial_gather},
    "scatter": {"flat": flat_scatter, "binomial": binomial_scatter},
    "all_to_all": {"pairwise": pairwise_all_to_all, "flat": flat_all_to_all, "bruck": bruck_all_to_all},
    "barrier": {"dissemination": dissemination_barrier, "flat": flat_barrier},
}


def _reducing(coefficients):
    """The same messages, each reduced on arrival."""
    messages, sent, _ = coefficients
    return messages, sent, sent


def _then(first, second):
    """One algorithm after another."""
    return tuple([a + b for a, b in zip(first, second)])  # noqa: B905  (MicroPython has no strict=)


def _pieces(rounds, chunks, trees=1):
    """``rounds`` of one piece each; each of the ``trees`` carries its part of the buffer in ``chunks`` pieces."""
    if chunks < 1:
        raise ValueError(f"chunks is {chunks}; cut the buffer into at least 1")
    return rounds, rounds / (trees * chunks), 0.0


def _with_the_rest(coefficients, world_size, core):
    """The ranks beyond ``core`` first send their buffers to be added, and receive the result at the end."""
    return _then(coefficients, (2, 2.0, 1.0)) if world_size > core else coefficients


def _torus(world_size, shape):
    return 2 * sum([side - 1 for side in shape]), 2 * (world_size - 1) / world_size, (world_size - 1) / world_size


def _grid(world_size, shape, sides):
    """``shape``, or for None the most even grid; ValueError if ``shape`` is not a grid of ``world_size`` ranks."""
    ranks(world_size)
    if shape is None:
        return _most_even(world_size, sides)
    product = 1
    for side in shape:
        product *= ranks(side)
    if len(shape) != sides or product != world_size:
        raise ValueError(f"shape is {tuple(shape)}; give {sides} sides whose product is {world_size}")
    return shape


def _most_even(world_size, sides):
    """The grid whose longest side is shortest."""
    if sides == 1:
        return (world_size,)
    best = ()
    for side in range(1, world_size + 1):
        if world_size % side == 0:
            grid = (side,) + _most_even(world_size // side, sides - 1)
            best = min(best or grid, grid, key=max)
    return best


def _log2(world_size):
    """Rounded up."""
    n, power = ranks(world_size), 0
    while 2**power < n:
        power += 1
    return power


def _power_of_two_up_to(world_size):
    n, power = ranks(world_size), 1
    while 2 * power <= n:
        power *= 2
    return power


def _digits_and_ones(number):
    """How many binary digits ``number`` has, plus how many of them are 1."""
    count = 0
    while number:
        count, number = count + 1 + number % 2, number // 2
    return count
