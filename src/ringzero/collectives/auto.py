"""Which algorithm "auto" means, and in how many pieces a buffer goes through a pipeline. No torch."""

from collections.abc import Callable
from math import sqrt

from ringzero.collectives.algorithms import ALGORITHMS
from ringzero.collectives.algorithms import options as options_of
from ringzero.collectives.schedule import Schedule

LATENCY_BYTES = 128 * 2**10  # bytes that gloo sends in the time that an empty message takes
MOST_CHUNKS = 64

# By collective: up to how many bytes an algorithm is the fastest on gloo, measured on 2 to 4 ranks of one machine; None
# is any size. Fewer rounds are better where a round costs more than its bytes.
FASTEST = {
    "all_reduce": ((2**20, "recursive_doubling"), (4 * 2**20, "sharded_parameter_server"), (None, "ring")),
    "reduce_scatter": ((None, "ring"),),
    "all_gather": ((None, "ring"),),
    "broadcast": ((None, "binomial"),),
    "reduce": ((None, "binomial"),),
    "gather": ((None, "flat"),),
    "scatter": ((None, "flat"),),
    "all_to_all": ((None, "pairwise"),),
    "barrier": ((None, "dissemination"),),
}


def chosen(
    collective: str, algorithm: str, world_size: int, size: int, **options: object
) -> tuple[str, dict[str, object]]:
    """``(name, options)`` of what runs on ``size`` bytes: "auto" is replaced by a name, missing ``chunks`` by a number.

    Raises ValueError for an algorithm that is not known, or that does not take the options.
    """
    named = ALGORITHMS[collective]
    if algorithm == "auto":
        if others := options.keys() - {"root"}:
            raise ValueError(f"{min(others)} is an option of some algorithms; name the one you mean instead of 'auto'")
        algorithm = next(name for limit, name in FASTEST[collective] if limit is None or size <= limit)
    if algorithm not in named:
        raise ValueError(f"algorithm is {algorithm!r}; {collective} has {', '.join(map(repr, named))} and 'auto'")
    takes = options_of(collective, algorithm)
    if unknown := options.keys() - set(takes):
        known = f"it takes {', '.join(takes)}" if takes else "it takes none"
        raise ValueError(f"{min(unknown)} is no option of {collective} by {algorithm!r}; {known}")
    if "chunks" in takes and options.get("chunks") is None:
        options = options | {"chunks": best_chunks(named[algorithm], world_size, size)}
    return algorithm, options


def best_chunks(generator: Callable[..., Schedule], world_size: int, size: int) -> int:
    """How many pieces make a pipeline fastest: more pieces fill it sooner, but each costs a message.

    K pieces of C parts of the buffer take A + P K rounds of S/CK bytes, so sqrt(A S / (P C LATENCY_BYTES)) is best.
    """
    once, twice = (generator(world_size, chunks=chunks) for chunks in (1, 2))
    each = len(twice.rounds) - len(once.rounds)
    fill = len(once.rounds) - each
    if fill <= 0:
        return 1
    return max(1, min(MOST_CHUNKS, round(sqrt(fill / each * size / once.chunks / LATENCY_BYTES))))
