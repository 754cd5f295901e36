"""Muon on sharded matrices: what orthogonalising costs, and three ways to do it on N ranks.

>>> newton_schulz_flops(768, 768, steps=5)
13589544960
>>> round(flop_overhead(steps=5, width=768, batch_tokens=524288), 2)  # per cent
0.73

Muon replaces the momentum of a matrix by the nearest matrix with orthogonal rows, found by a few Newton-Schulz
iterations. An iteration multiplies whole matrices, so a rank that has only a shard cannot do it alone. Three ways:

owner        one rank owns the matrix: the gradient is reduced to it, and the new matrix is broadcast from it
gather       shards as in ZeRO-2; the shards of the update are all-gathered, and every rank orthogonalises every matrix
all_to_all   shards as in ZeRO-2; one rank collects the update's shards, orthogonalises, and sends the shards back

Jordan et al., "Muon" (2024); Liu et al., "Muon is Scalable for LLM Training" (2025).
"""

from ringzero.costs.page.inputs import known, positive, ranks

WAYS = (  # (name, what is sent over ZeRO-2, in sizes of the matrix, by all of N ranks together)
    ("owner", lambda n: 0),
    ("gather", lambda n: n - 1),
    ("all_to_all", lambda n: 2 * (n - 1) / n),
)


def newton_schulz_flops(rows: int, columns: int, steps: int = 5) -> int:
    """FLOP to orthogonalise a matrix: steps (4 r^2 c + 2 r^3), for r the shorter side.

    A step is A = X X^T (2 r^2 c), A A (2 r^3) and its product with X (2 r^2 c).
    """
    positive(rows=rows, columns=columns, steps=steps)
    short, long = min(rows, columns), max(rows, columns)
    return steps * (4 * short**2 * long + 2 * short**3)


def flop_overhead(steps: int, width: int, batch_tokens: float) -> float:
    """At most so many per cent are added to the FLOP of a training step: 100 steps width / batch_tokens.

    A matrix of short side ``width`` takes 6 r c FLOP a token in forward and backward, and at most 6 r^2 c a
    Newton-Schulz step (Jordan et al. 2024).
    """
    positive(steps=steps, width=width, batch_tokens=batch_tokens)
    return 100 * steps * width / batch_tokens


def muon_bytes(
    way: str,
    matrices: list[tuple[int, int]],
    world_size: int,
    bytes_per_element: float = 4,
    update_bytes_per_element: float = 4,
) -> tuple[float, float]:
    """``(extra, total)`` bytes that all ranks together send in a step: over ZeRO-2, and all in all.

    ``matrices`` are ``(rows, columns)``. ZeRO-2 reduce-scatters the gradient and all-gathers the parameters,
    2 (N-1) sizes of the matrix in all, at ``bytes_per_element``. "owner" sends as much. "gather" sends N-1 sizes of the
    update more, "all_to_all" 2 (N-1)/N.

    >>> [muon_bytes(way, [(8, 4)], world_size=4) for way, _ in WAYS]
    [(0, 768), (384, 1152), (192.0, 960.0)]
    """
    known(WAYS, way, "way")
    ranks(world_size)
    positive(bytes_per_element=bytes_per_element, update_bytes_per_element=update_bytes_per_element)
    elements = sum(rows * columns for rows, columns in _checked(matrices))
    extra = dict(WAYS)[way](world_size) * elements * update_bytes_per_element
    return extra, 2 * (world_size - 1) * elements * bytes_per_element + extra


def muon_flops(way: str, matrices: list[tuple[int, int]], world_size: int, steps: int = 5) -> int:
    """Newton-Schulz FLOP of the rank that does the most.

    With "gather" every rank orthogonalises every matrix. Otherwise each matrix is given, from the most work to the
    least, to the rank that has the least work so far.

    >>> [muon_flops(way, [(8, 8)] * 5, world_size=4) // newton_schulz_flops(8, 8) for way, _ in WAYS]
    [2, 5, 2]
    """
    known(WAYS, way, "way")
    ranks(world_size)
    work = [newton_schulz_flops(rows, columns, steps) for rows, columns in _checked(matrices)]
    if way == "gather":
        return sum(work)
    loads = [0] * world_size
    for flops in sorted(work, reverse=True):
        loads[loads.index(min(loads))] += flops
    return max(loads)


def muon_seconds(
    way: str,
    matrices: list[tuple[int, int]],
    world_size: int,
    link_bandwidth: float,
    flops: float,
    steps: int = 5,
    bytes_per_element: float = 4,
    update_bytes_per_element: float = 4,
) -> float:
    """Seconds of communication and of Newton-Schulz in a step, one after the other.

    ``link_bandwidth``: bytes a second that a rank sends while it receives as much. All ranks send equally much at that
    rate: a reduction to an owner and a broadcast from it are pipelined through a ring. ``flops``: FLOP/s of a rank in
    these products. Latency is left out.
    """
    positive(link_bandwidth=link_bandwidth, flops=flops)
    _, total = muon_bytes(way, matrices, world_size, bytes_per_element, update_bytes_per_element)
    return total / world_size / link_bandwidth + muon_flops(way, matrices, world_size, steps) / flops


def _checked(matrices):
    if not matrices:
        raise ValueError("matrices is empty; give (rows, columns) of at least one")
    for rows, columns in matrices:
        positive(rows=rows, columns=columns)
    return matrices
