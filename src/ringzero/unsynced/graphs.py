"""Who averages with whom, and with which weights: mixing graphs as data.

In a round of gossip rank i replaces its model x_i by the weighted sum of W[i, j] x_j over all ranks j. W[i, j] is above
0 where rank j sends its model to rank i. A graph is the matrix W of each round; after the last one the first follows.

| graph                  | each rank averages with                            | weights                     |
|------------------------|----------------------------------------------------|-----------------------------|
| `ring`                 | its two neighbours                                 | equal                       |
| `torus`                | its neighbours up, down, left and right            | equal                       |
| `exponential`          | the ranks 1, 2, 4, ... places before it            | equal                       |
| `one_peer_exponential` | one of these, another one each round               | 1/2 and 1/2                 |
| `complete`             | every rank                                         | equal                       |
| `from_neighbours`      | the neighbours that are given, which also hear it  | Metropolis                  |
| `from_out_neighbours`  | the ranks that have it in their list, for push-sum | equal shares of each sender |
| `from_matrix`          | as the matrix says                                 | the matrix's                |

Ying et al., "Exponential graph is provably efficient for decentralized deep training" (2021); Xiao and Boyd, "Fast
linear iterations for distributed averaging" (2004), for Metropolis weights.

This is no ``Schedule``: a schedule's result is an exact sum of all ranks, which ``verify`` proves. Here each round only
brings the models closer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ringzero.collectives.schedule import check_world_size

TOLERANCE = 1e-9  # by which a sum of weights may miss 1
ROUNDING = 1e-12  # an eigenvalue below this is 0


@dataclass(frozen=True, eq=False)
class Graph:
    """``matrices[k % period]`` are the weights W of round k, shape ``(period, N, N)``, float64.

    Raises ValueError for a weight that is negative or not finite; unless all rows sum to 1, or all columns (then it is
    for push-sum only); when models of some ranks never reach some others; and when models are only passed round and
    never mixed.

    >>> graph = ring(4)
    >>> graph, graph.row(0, round=0)
    (<ring: 4 ranks>, {0: 0.3333333333333333, 1: 0.3333333333333333, 3: 0.3333333333333333})
    """

    name: str
    matrices: np.ndarray = field(repr=False)

    def __post_init__(self) -> None:
        _check_shape(self.name, self.matrices)
        _check_weights(self.name, self.matrices)
        if _bad_sum(self.matrices, axis=1) is not None:
            self.check_rows()
        _check_connected(self)
        self.matrices.flags.writeable = False

    def __repr__(self) -> str:
        rounds = f", {self.period} rounds" if self.period > 1 else ""
        return f"<{self.name}: {self.world_size} ranks{rounds}>"

    @property
    def period(self) -> int:
        """After how many rounds the first one comes again."""
        return len(self.matrices)

    @property
    def world_size(self) -> int:
        return self.matrices.shape[1]

    def weights(self, round: int) -> np.ndarray:
        """W of round ``round``, from 0 on: shape ``(N, N)``."""
        return self.matrices[round % self.period]

    def row(self, rank: int, round: int) -> dict[int, float]:
        """``{j: W[rank, j]}``, of this rank and of those it receives from, in the order of ranks."""
        row = self.weights(round)[rank]
        return {int(j): float(row[j]) for j in np.flatnonzero((row > 0) | (np.arange(len(row)) == rank))}

    def receivers(self, rank: int, round: int) -> list[int]:
        """The ranks to which ``rank`` sends its model."""
        return [int(i) for i in np.flatnonzero(self.weights(round)[:, rank]) if i != rank]

    def most_received(self, rank: int) -> int:
        """How many models ``rank`` receives in a round, at most."""
        return max(len(self.row(rank, round)) - 1 for round in range(self.period))

    def check_rows(self) -> None:
        """Raise ValueError, which names the row and its sum, unless all rows sum to 1."""
        if (bad := _bad_sum(self.matrices, axis=2)) is not None:
            round, rank, total = bad
            raise ValueError(
                f"{self.name}: row {rank} of round {round} sums to {total:.12g}; the weights with which a rank "
                "averages must sum to 1"
            )

    def check_columns(self) -> None:
        """Raise ValueError, which names the column and its sum, unless all columns sum to 1."""
        if (bad := _bad_sum(self.matrices, axis=1)) is not None:
            round, rank, total = bad
            raise ValueError(
                f"{self.name}: column {rank} of round {round} sums to {total:.12g}; the shares of its model that a "
                "rank gives away and keeps must sum to 1, or the mean of all models changes"
            )

    def check_doubly_stochastic(self) -> None:
        """Raise ValueError unless all rows and columns sum to 1, so that a round leaves the mean model as it is."""
        for check in (self.check_rows, self.check_columns):
            try:
                check()
            except ValueError as error:
                other = "" if _bad_sum(self.matrices, axis=1) else "; PushSum needs only columns that sum to 1"
                raise ValueError(f"{error}{other}") from None


def spectral_gap(graph: Graph) -> float:
    """1 - |lambda_2|: in the long run a round multiplies the distance between the models by |lambda_2|.

    lambda_2 is the second largest eigenvalue of W. For a graph of several rounds |lambda_2| is that of their product,
    and of this the root: the mean factor of a round. A gap of 1.0 means that a period makes all models equal. Where W
    is normal (symmetric, or each rank's neighbours are equally many places away), no round of a graph of one round has
    a larger factor. ``costs.gossip.spectral_gap`` has the closed forms.

    >>> round(spectral_gap(ring(16)), 6), spectral_gap(one_peer_exponential(16))
    (0.050747, 1.0)
    """
    product = np.eye(graph.world_size)
    for matrix in graph.matrices:
        product = matrix @ product
    magnitudes = np.sort(np.abs(np.linalg.eigvals(product)))[::-1]
    second = magnitudes[1:2].sum()  # of one rank there is none
    return 1.0 - float(second ** (1 / graph.period) if second > ROUNDING else 0.0)


def consensus_distance(models: ArrayLike) -> float:
    """Root of the mean squared distance between each rank's model and the mean model; ``models`` has shape (N, numel).

    >>> consensus_distance([[0.0, 0.0], [6.0, 8.0]])
    5.0
    """
    models = np.asarray(models, dtype=float)
    return float(np.sqrt(np.square(models - models.mean(0)).sum(1).mean()))


# ---- graphs


def complete(world_size: int) -> Graph:
    """Every rank averages with all: one round makes all models equal."""
    return _equal_weights("complete", world_size, lambda rank: range(world_size))


def ring(world_size: int) -> Graph:
    """Each rank averages with the one before and the one after it."""
    return _equal_weights("ring", world_size, lambda rank: (rank - 1, rank + 1))


def torus(rows: int, columns: int) -> Graph:
    """Ranks lie in a grid row by row, its edges joined; each averages with those above, below, left and right.

    Neighbours that are the same rank, as in a grid of two rows, count once.
    """
    check_world_size(min(rows, columns))

    def around(rank: int) -> list[int]:
        row, column = divmod(rank, columns)
        up_down = [(row + step) % rows * columns + column for step in (-1, 1)]
        return up_down + [row * columns + (column + step) % columns for step in (-1, 1)]

    return _equal_weights("torus", rows * columns, around)


def exponential(world_size: int) -> Graph:
    """Each rank sends to the ranks 1, 2, 4, ... places after it."""
    return _equal_weights("static_exponential", world_size, lambda rank: [rank - hop for hop in _hops(world_size)])


def one_peer_exponential(world_size: int) -> Graph:
    """In round k each rank sends to the rank 2^(k mod ceil(log2 N)) places after it, and to no other.

    For N = 2^m ranks m rounds make all models equal.
    """
    check_world_size(world_size)
    mine = np.eye(world_size)
    return Graph("one_peer_exponential", np.stack([(mine + np.roll(mine, hop, 0)) / 2 for hop in _hops(world_size)]))


def from_matrix(weights: ArrayLike, name: str = "matrix") -> Graph:
    """The graph of a matrix W, shape (N, N), or of one for each round of a period, shape (period, N, N)."""
    matrices = np.array(weights, dtype=np.float64)
    return Graph(name, matrices[None] if matrices.ndim == 2 else matrices)


def from_neighbours(neighbours: Mapping[int, Sequence[int]], name: str = "neighbours") -> Graph:
    """Rank i averages with ``neighbours[i]``; j with a weight of 1 / (1 + the larger number of neighbours of the two).

    Raises ValueError unless each of two neighbours has the other in its list, and unless the keys are 0 to N - 1.

    >>> from_neighbours({0: [1], 1: [0, 2], 2: [1]}).weights(0).round(3)
    array([[0.667, 0.333, 0.   ],
           [0.333, 0.333, 0.333],
           [0.   , 0.333, 0.667]])
    """
    lists = _lists(neighbours)
    matrix = np.zeros((len(lists), len(lists)))
    for rank, peers in enumerate(lists):
        for peer in peers:
            if rank not in lists[peer]:
                raise ValueError(f"rank {rank} has neighbour {peer}, but rank {peer} does not have {rank}; add it")
            matrix[rank, peer] = 1 / (1 + max(len(peers), len(lists[peer])))
    return from_matrix(matrix + np.diag(1 - matrix.sum(1)), name)


def from_out_neighbours(neighbours: Mapping[int, Sequence[int]], name: str = "out-neighbours") -> Graph:
    """Rank j gives equal shares of its model to itself and to ``neighbours[j]``: for push-sum, in one direction."""
    lists = _lists(neighbours)
    matrix = np.zeros((len(lists), len(lists)))
    for rank, peers in enumerate(lists):
        matrix[[rank, *peers], rank] = 1 / (1 + len(peers))
    return from_matrix(matrix, name)


# By the names in costs.gossip.
GRAPHS: dict[str, Callable[[int], Graph]] = {
    "ring": ring,
    "static_exponential": exponential,
    "one_peer_exponential": one_peer_exponential,
    "complete": complete,
}


def _hops(world_size: int) -> list[int]:
    """1, 2, 4, ... below ``world_size``; of one rank, which has nobody to send to, 0."""
    return [1 << power for power in range((world_size - 1).bit_length())] or [0]


def _equal_weights(name: str, world_size: int, receives_from: Callable[[int], Sequence[int]]) -> Graph:
    check_world_size(world_size)
    matrix = np.zeros((world_size, world_size))
    for rank in range(world_size):
        together = {rank, *(peer % world_size for peer in receives_from(rank))}
        matrix[rank, sorted(together)] = 1 / len(together)
    return Graph(name, matrix[None])


def _lists(neighbours: Mapping[int, Sequence[int]]) -> list[list[int]]:
    """The lists by rank, without doubles."""
    ranks = range(len(neighbours))
    if sorted(neighbours) != list(ranks):
        raise ValueError(f"neighbours has the ranks {sorted(neighbours)}; give one list for each rank from 0 on")
    for rank, peers in neighbours.items():
        if wrong := [peer for peer in peers if peer not in ranks or peer == rank]:
            raise ValueError(f"rank {rank} has neighbour {wrong[0]}; give other ranks, of 0 to {len(ranks) - 1}")
    return [sorted(set(neighbours[rank])) for rank in ranks]


# ---- checks


def _check_shape(name: str, matrices: np.ndarray) -> None:
    if matrices.ndim != 3 or 0 in matrices.shape or matrices.shape[1] != matrices.shape[2]:
        raise ValueError(f"{name}: weights have shape {matrices.shape}; give (N, N), or (rounds, N, N)")


def _check_weights(name: str, matrices: np.ndarray) -> None:
    wrong = np.argwhere(~(np.isfinite(matrices) & (matrices >= 0)))
    if len(wrong):
        round, row, column = wrong[0]
        value = matrices[round, row, column]
        raise ValueError(f"{name}: W[{row}, {column}] of round {round} is {value}; give weights from 0 on")


def _bad_sum(matrices: np.ndarray, axis: int) -> tuple[int, int, float] | None:
    """``(round, rank, sum)`` of the first row (``axis`` 2) or column (``axis`` 1) whose sum is not 1."""
    sums = matrices.sum(axis)
    wrong = np.argwhere(np.abs(sums - 1) > TOLERANCE)
    return (int(wrong[0][0]), int(wrong[0][1]), float(sums[tuple(wrong[0])])) if len(wrong) else None


def _check_connected(graph: Graph) -> None:
    sends_to = np.any(graph.matrices > 0, axis=0).T  # [j, i]: rank j's model enters rank i's in some round of a period
    from_0, to_0 = _reached(sends_to), _reached(sends_to.T)
    if not (from_0.all() and to_0.all()):
        senders = np.flatnonzero(~to_0 if from_0.all() else from_0).tolist()
        others = [rank for rank in range(graph.world_size) if rank not in senders]
        raise ValueError(
            f"{graph.name} is not connected: no model of the ranks {_said(senders)} ever reaches the ranks "
            f"{_said(others)}; add a link between them"
        )
    own = np.einsum("kii->ki", graph.matrices)  # the diagonals; where all are above 0, connected is enough
    if not own.all() and spectral_gap(graph) < 1e-9:
        round, rank = np.argwhere(own == 0)[0]
        raise ValueError(
            f"{graph.name}: the ranks pass their models round and never come closer, |lambda_2| is 1; "
            f"W[{rank}, {rank}] of round {round} is 0: give each rank a weight of its own"
        )


def _reached(edges: np.ndarray) -> np.ndarray:
    """Which ranks can be reached from rank 0."""
    reached: np.ndarray = np.arange(len(edges)) == 0
    while True:
        further = reached | edges[reached].any(axis=0)
        if np.array_equal(further, reached):
            return reached
        reached = further


def _said(ranks: list[int]) -> str:
    return ", ".join(map(str, ranks))
