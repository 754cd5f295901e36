"""What the algorithms worth knowing by heart cost, as closed forms in the alpha-beta-gamma model.

    COEFFICIENTS["all_reduce"]["ring"](8)                          (14, 1.75, 0.875)
    COEFFICIENTS["broadcast"]["ring"](8, chunks=100)               100 pieces follow each other

A cost is a triple: how many messages follow each other, how many times the buffer is sent in them, and how many times
it is reduced. ``alpha_beta.seconds`` turns the triple into a time. Every rank has one link in and one link out.
``ringzero.network.coefficients`` counts the same in a schedule, so it has the triple of every algorithm.

A function takes the number of ranks, and of a pipelined algorithm the number of pieces, ``chunks``. All raise
ValueError for fewer than 1 rank and fewer than 1 piece.

Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005), and the papers named in ``ringzero.collectives``.
"""

from ringzero.costs.page.inputs import ranks


def ring_reduce_scatter(world_size: int) -> tuple[float, float, float]:
    """N-1 messages of S/N bytes, each reduced on arrival."""
    return _reducing(ring_all_gather(world_size))


def ring_all_gather(world_size: int) -> tuple[float, float, float]:
    """N-1 messages of S/N bytes."""
    n = ranks(world_size)
    return n - 1, (n - 1) / n, 0.0


def ring_all_reduce(world_size: int) -> tuple[float, float, float]:
    """2(N-1) messages; 2(N-1)/N of the buffer sent, (N-1)/N reduced, by each rank."""
    return _then(ring_reduce_scatter(world_size), ring_all_gather(world_size))


def bruck_reduce_scatter(world_size: int) -> tuple[float, float, float]:
    """The ring's bytes in ceil(log2 N) rounds, for any N."""
    return _reducing(bruck_all_gather(world_size))


def bruck_all_gather(world_size: int) -> tuple[float, float, float]:
    """The ring's bytes in ceil(log2 N) rounds, for any N."""
    return _log2(world_size), ring_all_gather(world_size)[1], 0.0


def ring_broadcast(world_size: int, chunks: int = 1) -> tuple[float, float, float]:
    """K pieces through a pipe of N-1 links: N-2+K rounds of S/K bytes."""
    n = ranks(world_size)
    return _pieces(n - 2 + chunks if n > 1 else 0, chunks)


def flat_broadcast(world_size: int) -> tuple[float, float, float]:
    """The root sends N-1 whole buffers, one after another."""
    n = ranks(world_size)
    return n - 1, float(n - 1), 0.0


def flat_all_reduce(world_size: int) -> tuple[float, float, float]:
    """Reduce to the root, which is the broadcast backwards, then broadcast from it."""
    return _then(_reducing(flat_broadcast(world_size)), flat_broadcast(world_size))


def binomial_broadcast(world_size: int) -> tuple[float, float, float]:
    """ceil(log2 N) rounds of the whole buffer."""
    depth = _log2(world_size)
    return depth, float(depth), 0.0


def binomial_all_reduce(world_size: int) -> tuple[float, float, float]:
    """Reduce to one rank, then broadcast from it."""
    return _then(_reducing(binomial_broadcast(world_size)), binomial_broadcast(world_size))


def double_binary_tree_broadcast(world_size: int, chunks: int = 1) -> tuple[float, float, float]:
    """Each half of the buffer in K pieces down a tree of its own. The trees take turns, in rounds of S/2K bytes.

    The first piece takes 2 ceil(log2 N) - 1 rounds, or one more, to reach every rank; then two pieces follow a round.
    """
    n, depth = ranks(world_size), _log2(world_size)
    fill = 2 * depth - 1 + int(n % 4 == 3 or n == 2**depth)
    return _pieces(fill + 2 * (chunks - 1) if n > 1 else 0, chunks, trees=2)


def double_binary_tree_all_reduce(world_size: int, chunks: int = 1) -> tuple[float, float, float]:
    """Reduce to the roots of the trees, then broadcast from them."""
    broadcast = double_binary_tree_broadcast(world_size, chunks)
    return _then(_reducing(broadcast), broadcast)


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


def bruck_all_reduce(world_size: int) -> tuple[float, float, float]:
    """Reduce-scatter, then all-gather."""
    return _then(bruck_reduce_scatter(world_size), bruck_all_gather(world_size))


COEFFICIENTS: dict[str, dict] = {  # collective -> algorithm -> function, by the names in ``collectives.ALGORITHMS``
    "all_reduce": {
        "ring": ring_all_reduce,
        "flat": flat_all_reduce,
        "binomial": binomial_all_reduce,
        "double_binary_tree": double_binary_tree_all_reduce,
        "recursive_doubling": recursive_doubling_all_reduce,
        "rabenseifner": rabenseifner_all_reduce,
        "bruck": bruck_all_reduce,
    },
    "reduce_scatter": {"ring": ring_reduce_scatter, "bruck": bruck_reduce_scatter},
    "all_gather": {"ring": ring_all_gather, "bruck": bruck_all_gather},
    "broadcast": {
        "ring": ring_broadcast,
        "flat": flat_broadcast,
        "binomial": binomial_broadcast,
        "double_binary_tree": double_binary_tree_broadcast,
    },
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
