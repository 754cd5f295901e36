"""The usual mixing graphs (``mixing.Graph``) of gossip.

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

>>> graph = ring(4)
>>> graph, graph.row(0, round=0)
(<ring: 4 ranks>, {0: 0.3333333333333333, 1: 0.3333333333333333, 3: 0.3333333333333333})
>>> round(ring(16).spectral_gap(), 6), one_peer_exponential(16).spectral_gap()
(0.050747, 1.0)
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ringzero.collectives.schedule import check_world_size
from ringzero.unsynced.mixing import Graph


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
