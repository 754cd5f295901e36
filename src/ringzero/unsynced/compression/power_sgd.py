"""PowerSGD: the mean of gradients as a product of two thin matrices, which are summed over the ranks.

Vogels et al., "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization" (2019). A matrix M is
about P Q^T, of ``rank`` columns. One step of a power iteration finds them: P = M Q, made orthonormal, then Q = M^T P.
Both are linear in M, so they are all-reduced as they are.
"""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from ringzero.collectives import all_reduce
from ringzero.unsynced.compression.compressor import Compressor, Exchange, precision
from ringzero.unsynced.end_to_end import joined, views


class PowerSGD(Compressor):
    """Gradients of two or more dimensions are matrices, the first dimension by all others; vectors are sent whole.

    ``rank``        of the products; a matrix gets no higher one than it has rows and columns
    ``warm_start``  whether the power iteration goes on from the last step's Q; otherwise it starts at random
    ``start_step``  before this step gradients are all-reduced whole

    Two ring all-reduces: of all P with all vectors, and of all Q; see ``costs.compression.powersgd_bytes``. Raises
    ValueError unless ``rank`` is a whole number from 1, and ``start_step`` one from 0.
    """

    def __init__(self, rank: int, error_feedback: bool = True, warm_start: bool = True, start_step: int = 0,
                 seed: int = 0, group: dist.ProcessGroup | None = None):  # fmt: skip
        if not (isinstance(rank, int) and rank >= 1):
            raise ValueError(f"rank is {rank!r}; give a whole number, at least 1")
        if not (isinstance(start_step, int) and start_step >= 0):
            raise ValueError(f"start_step is {start_step!r}; give a whole number of steps, at least 0")
        self.rank, self.warm_start, self.start_step, self.seed = rank, warm_start, start_step, seed
        super().__init__(error_feedback, group)

    def reset(self) -> None:
        super().reset()
        self._kept["factors"] = WeakIdKeyDictionary()  # the last Q of each matrix

    def mean(self, values: Tensor, exchange: Exchange) -> Tensor:
        if exchange.step < self.start_step:
            mean = all_reduce(values.clone(), group=exchange.group) / exchange.ranks
            values.zero_()
            return mean
        mean, parameters = torch.empty_like(values), exchange.parameters
        given, made = (_by_parameter(vector, parameters) for vector in (values, mean))
        matrices = [place for place, parameter in enumerate(parameters) if parameter.dim() > 1 and parameter.numel()]
        vectors = [place for place in range(len(parameters)) if place not in matrices]

        begun = [orthonormal(self._factor(parameters[place], place, exchange)) for place in matrices]
        left = [given[place] @ q for place, q in zip(matrices, begun, strict=True)]
        sums = _summed([*left, *(given[place] for place in vectors)], exchange.group)
        left = [orthonormal(p) for p in sums[: len(matrices)]]
        right = _summed([given[place].T @ p for place, p in zip(matrices, left, strict=True)], exchange.group)

        for place, p, q, before in zip(matrices, left, right, begun, strict=True):
            torch.mm(p, q.T / exchange.ranks, out=made[place])
            given[place] -= made[place]
            if self.warm_start:
                self._kept["factors"][parameters[place]] = torch.where(q.isfinite().all(), q, before)
        for place, total in zip(vectors, sums[len(matrices) :], strict=True):
            torch.div(total, exchange.ranks, out=made[place])
            given[place].zero_()
        return mean

    def _factor(self, parameter: Tensor, place: int, exchange: Exchange) -> Tensor:
        """The Q to begin with."""
        if parameter in self._kept["factors"]:
            return self._kept["factors"][parameter]
        random = exchange.random(parameter.device, self.seed, place)
        shape, dtype = self._factor_shape(parameter), precision(parameter)
        return torch.randn(shape, generator=random, device=parameter.device, dtype=dtype)

    def _factor_shape(self, parameter: Tensor) -> tuple[int, int]:
        rows, columns = len(parameter), parameter.numel() // len(parameter)
        return columns, min(self.rank, rows, columns)

    def _check_shape(self, kind: str, name: str, tensor: Tensor, parameter: Tensor) -> None:
        if kind != "factors":
            super()._check_shape(kind, name, tensor, parameter)
        elif parameter.dim() < 2 or tensor.shape != self._factor_shape(parameter):
            raise ValueError(
                f"the state's factor of {name} has the shape {tuple(tensor.shape)}, which does not fit a parameter of "
                f"shape {tuple(parameter.shape)} and rank={self.rank}; load the state of the same module and rank"
            )


def orthonormal(matrix: Tensor) -> Tensor:
    """Columns at right angles and of length 1 that span those of ``matrix``, and more where these are dependent."""
    return torch.linalg.qr(matrix).Q


def _by_parameter(vector: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    """Views of the parts of ``vector``: matrices, and vectors for what has fewer dimensions."""
    return [part.flatten(1) if part.dim() > 1 else part.view(-1) for part in views(vector, parameters)]


def _summed(tensors: Sequence[Tensor], group: dist.ProcessGroup) -> list[Tensor]:
    """The sums over the ranks, of all tensors in one message."""
    if not tensors:
        return []
    return views(all_reduce(joined(tensors), group=group), tensors)
