"""Gossip: how fast N ranks that average only with their neighbours come to agree, and what they send.

>>> round(spectral_gap("ring", 16), 4), round(spectral_gap("static_exponential", 16), 4)
(0.0507, 0.4)
>>> [round(consensus_distance_after(8, topology, 16), 4) for topology in ("ring", "one_peer_exponential")]
[0.6593, 0.0]
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

from ringzero.costs.inputs import known, positive, ranks

TOPOLOGIES = (  # to whom a rank sends
    ("ring", "its two neighbours on a circle"),
    ("torus", "its neighbours along each side of a grid whose sides are circles"),
    ("hypercube", "the ranks whose number differs from its own in one binary digit"),
    ("complete", "all others"),
    ("static_exponential", "the ranks 1, 2, 4, ... further on"),
    ("one_peer_exponential", "one of those in each round, in turn"),
    ("undirected_exponential", "the ranks 1, 2, 4, ... further on, and as far back"),
    ("chain", "its one or two neighbours on a line"),
    ("grid", "its neighbours along each side of a grid whose sides are lines"),
    ("star", "rank 0, which sends to all others"),
)
WEIGHTS = (  # of a neighbour, where a rank has d neighbours; the rank itself has the rest up to 1
    ("uniform", "1 / (1 + d) of the rank that receives"),
    ("metropolis", "1 / (1 + the larger d of the two ranks)"),
    ("max_degree", "1 / (1 + the largest d of all)"),
)
DIRECTED = ("static_exponential", "one_peer_exponential")
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
    known(TOPOLOGIES, topology, "topology")
    n = ranks(nodes)
    if topology == "star":
        return [list(range(1, n))] + [[0]] * (n - 1)
    if topology == "hypercube":
        return [sorted([_other_digit(rank, digit) for digit in range(_digits(n))]) for rank in range(n)]
    if topology in ("ring", "torus", "chain", "grid"):
        sides = _sides(topology, n, shape)
        return [_along_sides(rank, sides, topology in ("ring", "torus")) for rank in range(n)]
    return [sorted([(rank + offset) % n for offset in _offsets(topology, n, round)]) for rank in range(n)]


def period(topology: str, nodes: int) -> int:
    """Rounds after which a topology repeats itself: ceil(log2 N) for "one_peer_exponential", otherwise 1."""
    known(TOPOLOGIES, topology, "topology")
    return max(1, len(_hops(ranks(nodes)))) if topology == "one_peer_exponential" else 1


def mixing_matrix(
    topology: str, nodes: int, weights: str = "uniform", shape: tuple[int, ...] | None = None, round: int = 0
) -> list[list[float]]:
    """W as rows: the weight that a rank gives to the values of each rank. Every row sums to 1.

    So does every column, and the mean of all ranks' values stays, unless weights are "uniform" and ranks have unequally
    many neighbours: on a chain, a grid and a star. "metropolis" and "max_degree" weights keep the mean there too.

    >>> mixing_matrix("star", 4)[1], mixing_matrix("star", 4, "metropolis")[1]
    ([0.5, 0.5, 0.0, 0.0], [0.25, 0.75, 0.0, 0.0])
    """
    known(WEIGHTS, weights, "weights")
    to = neighbours(topology, nodes, shape, round)
    degrees = [len(others) for others in to]  # in every topology a rank receives from as many as it sends to
    matrix = [[0.0] * nodes for _ in to]
    for sender, others in enumerate(to):
        for receiver in others:
            if weights == "uniform":
                degree = degrees[receiver]
            elif weights == "metropolis":
                degree = max(degrees[sender], degrees[receiver])
            else:
                degree = max(degrees)
            matrix[receiver][sender] = 1 / (1 + degree)
    for rank, row in enumerate(matrix):
        row[rank] = 1 - sum(row)
    return matrix


# ---- how fast ranks agree


def spectral_gap(topology: str, nodes: int, weights: str = "uniform", shape: tuple[int, ...] | None = None) -> float:
    """1 - |lambda_2(W)|, to 1e-12 or better; 1 for a single rank.

    "one_peer_exponential" has another W in each round. |lambda_2| is that of their product over one ``period``, and
    of this the root: the mean factor of a round. The gap is 1 where the number of ranks is a power of two, because all
    ranks then agree exactly after a period.

    Rings, tori, hypercubes, exponential and complete graphs take a moment for thousands of ranks. Others take about
    N^3 operations.

    >>> [round(spectral_gap(topology, 36), 4) for topology in ("complete", "torus", "ring", "chain", "star")]
    [1.0, 0.2, 0.0101, 0.0026, 0.5]
    """
    known(TOPOLOGIES, topology, "topology")
    known(WEIGHTS, weights, "weights")
    n = ranks(nodes)
    if n == 1:
        return 1.0
    if topology in ("chain", "grid", "star"):  # unequally many neighbours
        return _symmetric_gap(_symmetric(mixing_matrix(topology, n, weights, shape)))
    if topology in ("ring", "torus"):
        return _torus_gap(_sides(topology, n, shape))
    if topology == "hypercube":
        return _torus_gap((2,) * _digits(n))
    if topology == "one_peer_exponential":
        second = _second_of_circulants([(0, hop) for hop in _hops(n)], n)
        return 1 - (second ** (1 / len(_hops(n))) if second > ROUNDING else 0)
    return 1 - _second_of_circulants([(0,) + tuple(_offsets(topology, n, 0))], n)


def matrix_gap(matrix: list[list[float]]) -> float:
    """1 - |lambda_2| of a mixing matrix of your own, as rows. Takes about N^3 operations.

    ValueError for a matrix that is not square, not symmetric, or has a row that does not sum to 1. The gap of a graph
    that is not connected is 0.

    >>> matrix_gap([[0.5, 0.5], [0.5, 0.5]]), matrix_gap([[1.0, 0.0], [0.0, 1.0]])
    (1.0, 0.0)
    """
    n = ranks(len(matrix))
    for i, row in enumerate(matrix):
        if len(row) != n:
            raise ValueError(f"row {i} has {len(row)} weights; give {n}, as many as there are rows")
        if not abs(sum(row) - 1) < 1e-9:
            raise ValueError(f"row {i} sums to {sum(row)}; give weights whose sum is 1")
        if min(row) < 0:
            raise ValueError(f"row {i} has the weight {min(row)}; give weights of 0 or more")
    for i in range(n):
        for j in range(i):
            if not abs(matrix[i][j] - matrix[j][i]) < 1e-9:
                there, back = matrix[i][j], matrix[j][i]
                raise ValueError(f"weight [{i}][{j}] is {there} and [{j}][{i}] {back}; give a symmetric matrix")
    return 1.0 if n == 1 else _symmetric_gap(_symmetric(matrix))


def consensus_distance_after(
    rounds: int,
    topology: str,
    nodes: int,
    distance: float = 1.0,
    weights: str = "uniform",
    shape: tuple[int, ...] | None = None,
) -> float:
    """The most that can be left of ``distance`` after ``rounds`` rounds: distance (1 - gap)^rounds.

    The distance is the root of the mean squared distance between each rank's values and the mean of all. This much is
    left where ranks differ in the slowest pattern only, and less of other patterns. In the long run the ratio from
    round to round is 1 - gap. For "one_peer_exponential" only whole periods count, because a single round leaves some
    patterns as they are.

    ValueError where W does not keep the mean: "uniform" weights on a chain of 3 or more, a grid or a star.
    """
    if not rounds >= 0:
        raise ValueError(f"rounds is {rounds}; give 0 or more")
    if not distance >= 0:
        raise ValueError(f"distance is {distance}; give 0 or more")
    degrees = [len(others) for others in neighbours(topology, nodes, shape)]
    if weights == "uniform" and min(degrees) != max(degrees):
        raise ValueError(
            f"weights is 'uniform', which on a {topology} leads to a mean weighted by 1 + neighbours; give 'metropolis'"
        )
    left = 1 - spectral_gap(topology, nodes, weights, shape)
    whole = rounds - rounds % period(topology, nodes)
    return distance * (left if left > ROUNDING else 0.0) ** whole


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


def pairwise_gap(topology: str, nodes: int, shape: tuple[int, ...] | None = None) -> float:
    """How much the expected square of the distance shrinks when one pair of neighbours averages: 1 - lambda_2(E[W]).

    Every edge of the graph is equally likely, as in AD-PSGD on a graph whose ranks have equally many neighbours (Boyd
    et al. 2006; Lian et al. 2018). After k exchanges at most (1 - gap)^k of the squared distance is expected to be
    left.

    ValueError for a directed topology, where no pair exchanges.

    >>> round(pairwise_gap("complete", 16), 4), round(pairwise_gap("ring", 16), 4)
    (0.0667, 0.0048)
    """
    known(TOPOLOGIES, topology, "topology")
    if topology in DIRECTED:
        raise ValueError(f"topology is {topology!r}, whose ranks send one way; give one whose neighbours exchange")
    n = ranks(nodes)
    if n == 1:
        return 1.0
    to = neighbours(topology, n, shape)
    ends = sum([len(others) for others in to])  # twice the edges
    mean = [[0.0] * n for _ in range(n)]  # E[W] = I - L / ends, with L the graph's Laplacian
    for rank, others in enumerate(to):
        mean[rank][rank] = 1 - len(others) / ends
        for other in others:
            mean[rank][other] = 1 / ends
    return 1 - _extremes(mean)[1]


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
    hops = []
    while 2 ** len(hops) < n:
        hops.append(2 ** len(hops))
    return hops


def _offsets(topology, n, round):
    """How much further on the ranks are to which a rank sends, in graphs that look alike from every rank."""
    hops = _hops(n)
    if topology == "complete":
        return list(range(1, n))
    if topology == "one_peer_exponential":
        return [hops[round % len(hops)]] if hops else []
    if topology == "undirected_exponential":
        return sorted(set(hops + [n - hop for hop in hops]))
    return hops


def _digits(n):
    if 2 ** len(_hops(n)) != n:
        raise ValueError(f"nodes is {n}; a hypercube has a power of two")
    return len(_hops(n))


def _other_digit(rank, digit):
    return rank - 2**digit if rank // 2**digit % 2 else rank + 2**digit


def _sides(topology, n, shape):
    """The sides of a torus or a grid; a ring and a chain have one."""
    if topology in ("ring", "chain"):
        return (n,)
    if shape is None:
        rows = max([side for side in range(1, n + 1) if n % side == 0 and side * side <= n])
        return (rows, n // rows)
    product = 1
    for side in shape:
        product *= side if side >= 1 else 0
    if product != n or not shape:
        raise ValueError(f"shape is {tuple(shape)}; give sides whose product is nodes, {n}")
    return tuple(shape)


def _along_sides(rank, sides, wraps):
    near, stride = set(), 1
    for side in reversed(sides):
        place = rank // stride % side
        for other in (place - 1, place + 1):
            if wraps or 0 <= other < side:
                near.add(rank + (other % side - place) * stride)
        stride *= side
    return sorted(near - {rank})


# ---- eigenvalues


def _torus_gap(sides):
    """From the eigenvalues of its sides' circles, 2 cos(2 pi k / side): those of a torus are all sums of one of each.

    The second largest sum changes one side only. The smallest sum never has the larger magnitude.
    """
    degree, step = 0, 0.0  # from the largest sum, which is the degree, to the second largest
    for side in sides:
        if side > 1:
            along = 1 if side == 2 else 2  # neighbours
            degree += along
            down = along * (1 - math.cos(2 * math.pi / side))
            step = min(step, down) if step else down
    return step / (1 + degree)


def _second_of_circulants(rows, n):
    """|lambda_2| of a product of circulant matrices. ``rows``: the places of each one's equal weights.

    Waves exp(2 pi i k j / n) are the eigenvectors of all of them, so the magnitudes of a wave's eigenvalues multiply.
    """
    largest = 0.0
    for wave in range(1, n):
        product = 1.0
        for places in rows:
            angles = [2 * math.pi * (wave * place % n) / n for place in places]
            across, up = sum([math.cos(angle) for angle in angles]), sum([math.sin(angle) for angle in angles])
            product *= math.sqrt(across * across + up * up) / len(places)
        largest = max(largest, product)
    return largest


def _symmetric(matrix):
    """A symmetric matrix with the same eigenvalues: W is D^-1/2 S D^1/2 with a diagonal D, so S_ij^2 = W_ij W_ji."""
    n = len(matrix)
    return [[math.sqrt(matrix[i][j] * matrix[j][i]) for j in range(n)] for i in range(n)]


def _symmetric_gap(matrix):
    smallest, second = _extremes(matrix)
    return 1 - max(abs(smallest), abs(second))


def _extremes(matrix):
    """The smallest and the second largest eigenvalue of a symmetric matrix whose eigenvalues are from -1 to 1."""
    diagonal, beside = _tridiagonal(matrix)
    squares = [0.0] + [value * value for value in beside]
    return _eigenvalue(diagonal, squares, 1), _eigenvalue(diagonal, squares, len(diagonal) - 1)


def _eigenvalue(diagonal, squares, k):
    """The k-th smallest, by bisection: the signs of the pivots of T - x I say how many eigenvalues lie below x."""
    low, high = -1.0 - 1e-9, 1.0 + 1e-9
    for _ in range(60):
        middle = (low + high) / 2
        below, pivot = 0, 1.0
        for here, square in zip(diagonal, squares):  # noqa: B905 - MicroPython has no strict=
            pivot = here - middle - square / pivot
            if pivot == 0:
                pivot = 1e-300
            below += pivot < 0
        if below >= k:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def _tridiagonal(matrix):
    """Householder's reflections: the same eigenvalues in a matrix with three diagonals. Returns two of them."""
    a = [list(row) for row in matrix]
    n, beside = len(a), []
    for k in range(n - 1):
        column = [a[i][k] for i in range(k + 1, n)]
        rest = sum([value * value for value in column[1:]])
        if rest < 1e-32:  # nothing beyond the three diagonals
            beside.append(column[0])
            continue
        norm = math.sqrt(column[0] * column[0] + rest)
        beside.append(-norm if column[0] > 0 else norm)
        v = [column[0] - beside[-1]] + column[1:]  # reflects the column onto its first place
        scale = 2 / (v[0] * v[0] + rest)
        block = [row[k + 1 :] for row in a[k + 1 :]]
        p = [scale * _dot(row, v) for row in block]
        half = scale * _dot(p, v) / 2
        w = [p_i - half * v_i for p_i, v_i in zip(p, v)]  # noqa: B905
        for i, row in enumerate(block):
            v_i, w_i = v[i], w[i]
            a[k + 1 + i][k + 1 :] = [x - v_i * w_j - w_i * v_j for x, v_j, w_j in zip(row, v, w)]  # noqa: B905
    return [a[i][i] for i in range(n)], beside


def _dot(left, right):
    return sum([x * y for x, y in zip(left, right)])  # noqa: B905
