"""Who averages with whom, and with which weights: a mixing graph as data.

In a round of gossip rank i replaces its model x_i by the weighted sum of W[i, j] x_j over all ranks j. W[i, j] is above
0 where rank j sends its model to rank i. A graph is the matrix W of each round; after the last one the first follows.
``graphs`` makes the usual ones.

This is no ``Schedule``: a schedule's result is an exact sum of all ranks, which ``verify`` proves. Here each round only
brings the models closer.
"""

from dataclasses import dataclass, field

import numpy as np

TOLERANCE = 1e-9  # by which a sum of weights may miss 1
ROUNDING = 1e-12  # an eigenvalue below this is 0
ROWS, COLUMNS = 2, 1  # the axis of ``matrices`` over which the sum of each runs


@dataclass(frozen=True, eq=False)
class Graph:
    """``matrices[k % period]`` are the weights W of round k, shape ``(period, N, N)``, float64.

    Raises ValueError for a weight that is negative or not finite; unless all rows sum to 1, or all columns (then it is
    for push-sum only); when models of some ranks never reach some others; and when models are only passed round and
    never mixed.
    """

    name: str
    matrices: np.ndarray = field(repr=False)

    def __post_init__(self) -> None:
        _check_weights(self.name, self.matrices)
        if self._wrong_sum(COLUMNS):
            self.check_rows()
        self._check_connected()
        self._check_mixing()
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

    def spectral_gap(self) -> float:
        """1 - |lambda_2|: in the long run a round multiplies the distance between the models by |lambda_2|.

        lambda_2 is the second largest eigenvalue of W. For a graph of several rounds |lambda_2| is that of their
        product, and of this the root: the mean factor of a round. A gap of 1.0 means that a period makes all models
        equal. If W is normal (symmetric, or each rank's neighbours are equally many places away), no round of a graph
        of one round has a larger factor. ``costs.gossip.spectral_gap`` has the closed forms.
        """
        product = np.eye(self.world_size)
        for matrix in self.matrices:
            product = matrix @ product
        magnitudes = np.sort(np.abs(np.linalg.eigvals(product)))[::-1]
        second = magnitudes[1:2].sum()  # 0 for a single rank, which has no second one
        return 1.0 - float(second ** (1 / self.period) if second > ROUNDING else 0.0)

    # ---- checks

    def check_rows(self) -> None:
        """Raise ValueError, which names the row and its sum, unless all rows sum to 1."""
        if wrong := self._wrong_sum(ROWS):
            raise ValueError(f"{self.name}: row {wrong}; the weights with which a rank averages must sum to 1")

    def check_columns(self) -> None:
        """Raise ValueError, which names the column and its sum, unless all columns sum to 1."""
        if wrong := self._wrong_sum(COLUMNS):
            raise ValueError(
                f"{self.name}: column {wrong}; the shares of its model that a rank gives away and keeps must sum to 1, "
                "or the mean of all models changes"
            )

    def check_doubly_stochastic(self) -> None:
        """Raise ValueError unless all rows and columns sum to 1, so that a round leaves the mean model as it is."""
        self.check_columns()
        try:
            self.check_rows()
        except ValueError as error:
            raise ValueError(f"{error}; PushSum needs only columns that sum to 1") from None

    def _wrong_sum(self, axis: int) -> str:
        """Which of the sums is not 1, in words; empty if all are."""
        sums = self.matrices.sum(axis)
        for round, rank in np.argwhere(np.abs(sums - 1) > TOLERANCE):
            return f"{rank} of round {round} sums to {sums[round, rank]:.12g}"
        return ""

    def _check_connected(self) -> None:
        sends_to = np.any(self.matrices > 0, axis=0).T  # [j, i]: rank j's model enters rank i's in some round
        from_0, to_0 = _reached(sends_to), _reached(sends_to.T)
        if from_0.all() and to_0.all():
            return
        senders = ~to_0 if from_0.all() else from_0
        there, here = (", ".join(map(str, np.flatnonzero(some))) for some in (senders, ~senders))
        raise ValueError(
            f"{self.name} is not connected: no model of the ranks {there} ever reaches the ranks {here}; add a link "
            "between them"
        )

    def _check_mixing(self) -> None:
        own = np.einsum("kii->ki", self.matrices)  # each rank's weight of its own model, by round
        if not own.all() and self.spectral_gap() < TOLERANCE:  # if all are above 0, to be connected is enough
            round, rank = np.argwhere(own == 0)[0]
            raise ValueError(
                f"{self.name}: the ranks pass their models round and never come closer, |lambda_2| is 1; "
                f"W[{rank}, {rank}] of round {round} is 0: give each rank a weight of its own"
            )


def _check_weights(name: str, matrices: np.ndarray) -> None:
    if matrices.ndim != 3 or 0 in matrices.shape or matrices.shape[1] != matrices.shape[2]:
        raise ValueError(f"{name}: weights have shape {matrices.shape}; give (N, N), or (rounds, N, N)")
    for round, row, column in np.argwhere(~(np.isfinite(matrices) & (matrices >= 0))):
        value = matrices[round, row, column]
        raise ValueError(f"{name}: W[{row}, {column}] of round {round} is {value}; give weights from 0 on")


def _reached(edges: np.ndarray) -> np.ndarray:
    """Which ranks can be reached from rank 0."""
    reached: np.ndarray = np.arange(len(edges)) == 0
    while True:
        further = reached | edges[reached].any(axis=0)
        if np.array_equal(further, reached):
            return reached
        reached = further
