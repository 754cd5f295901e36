"""Gossip: how fast N ranks that average only with their neighbours come to agree, and what they send.

>>> round(spectral_gap("ring", 16), 4), round(spectral_gap("static_exponential", 16), 4)
(0.0507, 0.4)
>>> gossip_bytes("ring", 16, size=1000)[0], gossip_bytes("one_peer_exponential", 16, size=1000)[0]
(2000, 1000)

In a round each rank replaces its values by a weighted mean of its own and those that it is sent: x becomes W x. Each
row of the mixing matrix W sums to 1, so what all agree on stays. The slowest pattern of disagreement shrinks by
|lambda_2| in each round, the second largest magnitude of an eigenvalue of W. The spectral gap is 1 - |lambda_2|: 0 for
ranks that never agree, 1 for ranks that agree after one round.

Lian et al., "Can decentralized algorithms outperform centralized algorithms?" (D-PSGD, NIPS 2017); Assran et al.,
"Stochastic gradient push" (2019); Ying et al., "Exponential graph is provably efficient for decentralized deep
training" (NeurIPS 2021). ValueError for an unknown topology or weights, and a shape that does not fit.
"""

import math
from collections.abc import Sequence

import numpy as np

from ringzero.costs.page.inputs import known, positive, ranks

TOPOLOGIES = (  # to whom a rank sends
    ("ring", "its two neighbours on a circle"),
    ("torus", "its neighbours along each side of a grid whose sides are circles"),
    ("hypercube", "the ranks whose number differs from its own in one binary digit"),
    ("complete", "all others"),
    ("static_exponential", "the ranks 1, 2, 4, ... further on"),
    ("one_peer_exponential", "one of those in each round, in turn"),
    ("chain", "its one or two neighbours on a line"),
    ("grid", "its neighbours along each side of a grid whose sides are lines"),
    ("star", "rank 0, which sends to all others"),
)
UNEVEN = ("chain", "grid", "star")  # ranks have unequally many neighbours; in the others all look alike
WEIGHTS = (  # of a neighbour, where a rank has d neighbours; the rank itself has the rest up to 1
    ("uniform", "1 / (1 + d) of the rank that receives"),
    ("metropolis", "1 / (1 + the larger d of the two ranks)"),
)
ROUNDING = 1e-12  # an eigenvalue below this is 0


# ---- graphs


def neighbours(topology: str, nodes: int, shape: tuple[int, ...] | None = None, round: int = 0) -> list[list[int]]:
    """To whom each rank sends, in ascending order: a list for each rank.

    ``shape``: the sides of a torus or a grid, ranks numbered along the last side first; None for the two most even
    sides, which for a prime number are a ring or a chain. A neighbour that is reached both ways counts once.
    ``round`` matters to "one_peer_exponential" only.

    >>> neighbours("torus", 6, shape=(2, 3))[0], neighbours("static_exponential", 6)[5], neighbours("star", 4)[0]
    ([1, 2, 3], [0, 1, 3], [1, 2, 3])
    """
    sides = _sides(topology, nodes, shape)
    return [_neighbours_of(rank, topology, sides, round) for rank in range(nodes)]


def period(topology: str, nodes: int) -> int:
    """Rounds after which a topology repeats itself: ceil(log2 N) for "one_peer_exponential", otherwise 1."""
    known(TOPOLOGIES, topology, "topology")
    return max(1, len(_hops(ranks(nodes)))) if topology == "one_peer_exponential" else 1


def mixing_matrix(
    topology: str, nodes: int, weights: str = "uniform", shape: tuple[int, ...] | None = None, round: int = 0
) -> np.ndarray:
    """W, shape (N, N): row i has the weights that rank i gives to the values of each rank. Every row sums to 1.

    So does every column, and the mean of all ranks' values stays, unless weights are "uniform" and ranks have unequally
    many neighbours: on a chain, a grid and a star. "metropolis" weights keep the mean there too.

    >>> mixing_matrix("star", 4)[1].tolist(), mixing_matrix("star", 4, "metropolis")[1].tolist()
    ([0.5, 0.5, 0.0, 0.0], [0.25, 0.75, 0.0, 0.0])
    """
    known(WEIGHTS, weights, "weights")
    to = neighbours(topology, nodes, shape, round)
    matrix = np.zeros((nodes, nodes))
    for sender, others in enumerate(to):
        for receiver in others:
            degree = len(to[receiver])  # in every topology a rank receives from as many as it sends to
            if weights == "metropolis":
                degree = max(degree, len(others))
            matrix[receiver, sender] = 1 / (1 + degree)
    return matrix + np.diag(1 - matrix.sum(axis=1))


# ---- how fast ranks agree


def spectral_gap(topology: str, nodes: int, weights: str = "uniform", shape: tuple[int, ...] | None = None) -> float:
    """1 - |lambda_2(W)|, to 1e-12 or better; 1 for a single rank.

    "one_peer_exponential" has another W in each round. |lambda_2| is that of their product over one ``period``, and
    of this the root: the mean factor of a round. The gap is 1 where the number of ranks is a power of two, because all
    ranks then agree exactly after a period.

    Where all ranks look alike, waves along the sides are the eigenvectors of W, and a Fourier transform of what rank 0
    sends gives the eigenvalues: thousands of ranks take a moment. A chain, a grid and a star take about N^3 operations.

    >>> [round(spectral_gap(topology, 36), 4) for topology in ("complete", "torus", "ring", "chain", "star")]
    [1.0, 0.2, 0.0101, 0.0026, 0.5]
    """
    known(WEIGHTS, weights, "weights")
    sides = _sides(topology, nodes, shape)
    if topology in UNEVEN:
        return _gap(np.linalg.eigvals(mixing_matrix(topology, nodes, weights, shape)))
    rounds, eigenvalues = period(topology, nodes), np.ones(sides, complex)
    for round in range(rounds):  # every W has the same eigenvectors, so eigenvalues of the product are products
        sent, others = np.zeros(nodes), _neighbours_of(0, topology, sides, round)
        sent[[0, *others]] = 1 / (1 + len(others))
        eigenvalues *= np.fft.fftn(sent.reshape(sides))
    return _gap(eigenvalues.ravel(), rounds)


def matrix_gap(matrix: Sequence[Sequence[float]]) -> float:
    """1 - |lambda_2| of a mixing matrix of your own, shape (N, N). Takes about N^3 operations.

    ValueError for a matrix that is not square, not symmetric, or has a row that does not sum to 1. The gap of a graph
    that is not connected is 0.

    >>> matrix_gap([[0.5, 0.5], [0.5, 0.5]]), matrix_gap([[1.0, 0.0], [0.0, 1.0]])
    (1.0, 0.0)
    """
    for i, row in enumerate(matrix):
        if len(row) != len(matrix):
            raise ValueError(f"row {i} has {len(row)} weights; give {len(matrix)}, as many as there are rows")
        if not abs(sum(row) - 1) < 1e-9:
            raise ValueError(f"row {i} sums to {sum(row)}; give weights whose sum is 1")
        if min(row) < 0:
            raise ValueError(f"row {i} has the weight {min(row)}; give weights of 0 or more")
    there = np.array([list(row) for row in matrix], dtype=float)
    for i, j in np.argwhere(abs(there - there.T) >= 1e-9)[:1]:
        raise ValueError(f"weight [{j}][{i}] is {matrix[j][i]} and [{i}][{j}] {matrix[i][j]}; give a symmetric matrix")
    return _gap(np.linalg.eigvalsh(there))


def steady_consensus_distance(gap: float, step_distance: float, independent: bool = False) -> float:
    """The distance at which a round of gossip removes as much as a step of training adds, as an upper bound.

    In each step the ranks' updates are ``step_distance`` apart: the root of the mean squared distance to their mean.
    After the round that follows, step (1 - gap) / gap is left if the updates of all steps may differ in the same way.
    ``independent``: they differ anew in each step, as with noise of new samples, and the squares add up to
    step sqrt(l^2 / (1 - l^2)) for l = 1 - gap.

    >>> round(steady_consensus_distance(0.05, 1.0), 6), round(steady_consensus_distance(0.05, 1.0, independent=True), 2)
    (19.0, 3.04)
    """
    if not 0 < gap <= 1:
        raise ValueError(f"gap is {gap}; give a spectral gap above 0 and at most 1")
    if not step_distance >= 0:
        raise ValueError(f"step_distance is {step_distance}; give 0 or more")
    left = 1 - gap
    if independent:
        return step_distance * left / math.sqrt(1 - left * left)
    return step_distance * left / gap


def _gap(eigenvalues, rounds=1):
    """1 - |lambda_2|, for the eigenvalues of the product of so many rounds."""
    second = np.sort(np.abs(eigenvalues))[-2:-1].sum()  # of one rank there is none
    return 1.0 - float(second ** (1 / rounds) if second > ROUNDING else 0.0)


# ---- what they send


def gossip_bytes(topology: str, nodes: int, size: float, shape: tuple[int, ...] | None = None) -> list[float]:
    """Bytes by rank in a round: the buffer of ``size`` bytes to each neighbour. An all-reduce sends 2(N-1)/N of it.

    >>> gossip_bytes("star", 4, size=100), gossip_bytes("hypercube", 8, size=100)[0]
    ([300, 100, 100, 100], 300)
    """
    positive(size=size)
    return [len(others) * size for others in neighbours(topology, nodes, shape)]


# ---- the graphs' rules


def _hops(n):
    """1, 2, 4, ... below n."""
    return [1 << power for power in range((n - 1).bit_length())]


def _sides(topology, nodes, shape):
    """The sides of the grid in which the ranks lie: of a hypercube all are 2; a graph with no grid has one."""
    known(TOPOLOGIES, topology, "topology")
    n = ranks(nodes)
    if topology == "hypercube":
        if n & (n - 1):
            raise ValueError(f"nodes is {n}; a hypercube has a power of two")
        return (2,) * len(_hops(n))
    if topology not in ("torus", "grid"):
        return (n,)
    if shape is None:
        rows = max(side for side in range(1, math.isqrt(n) + 1) if n % side == 0)
        return (rows, n // rows)
    if not shape or min(shape) < 1 or math.prod(shape) != n:
        raise ValueError(f"shape is {tuple(shape)}; give sides whose product is nodes, {n}")
    return tuple(shape)


def _neighbours_of(rank, topology, sides, round):
    """To whom the rank sends, in ascending order."""
    n = math.prod(sides)
    if topology == "star":
        return list(range(1, n)) if rank == 0 else [0]
    if topology == "complete":
        return [other for other in range(n) if other != rank]
    if topology.endswith("exponential"):
        hops = _hops(n)
        if topology == "one_peer_exponential" and hops:
            hops = [hops[round % len(hops)]]
        return sorted((rank + hop) % n for hop in hops)
    near, stride, wraps = set(), 1, topology not in UNEVEN
    for side in reversed(sides):
        place = rank // stride % side
        for other in (place - 1, place + 1):
            if wraps or 0 <= other < side:
                near.add(rank + (other % side - place) * stride)
        stride *= side
    return sorted(near - {rank})
