"""Stochastic gradient push: gossip in one direction, where nobody has to hear back from those it sends to.

Assran et al., "Stochastic gradient push for distributed deep learning" (2019). Rank j gives the share P[i, j] of its
model to rank i, and keeps P[j, j]. The columns of P sum to 1, its rows need not: a rank that hears from many ends up
with more than one model's worth, x. A number w, which is mixed with the same shares, says how much, and z = x / w is
the model that computes:

    x_j <- x_j - lr g(z_j);   x_i <- sum_j P[i, j] x_j;   w_i <- sum_j P[i, j] w_j;   z_i = x_i / w_i

If all rows sum to 1 as well, w stays 1, and this is ``Gossip(overlap=False)``.
"""

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Module

from ringzero.unsynced.gossip import Gossip
from ringzero.unsynced.mixing import Graph
from ringzero.unsynced.own_copy import OwnCopy

SMALLEST = 2.0**-20  # x keeps the precision of z


class PushSum(Gossip):
    """Stochastic gradient push on ``graph``, whose columns sum to 1; all else as ``Gossip``.

    The parameters are those of z, the model that computes. ``weight`` is w, a tensor. A step sends w besides, 8 bytes,
    to each neighbour. ``average()`` is the sum of all x divided by that of all w. The share of a neighbour that is gone
    stays with the rank, x and w alike, so that the survivors still agree on a mean of theirs.

    Without the lost ranks a graph in one direction may have ranks that give and do not receive: their w falls towards
    0, and a step of x would be one of lr/w in z. So the optimizer steps z itself once a neighbour is lost, or w is
    below 1/2N (``steps_z``). A rank whose w has fallen below ``SMALLEST`` counts as one whole model again.

    The average comes after the local step, so nothing travels beside the computation.
    """

    def __init__(self, module: Module, optimizer: torch.optim.Optimizer, graph: Graph, *,
                 group: dist.ProcessGroup | None = None):  # fmt: skip
        self.weight = torch.ones((), dtype=torch.float64)
        super().__init__(module, optimizer, graph, overlap=False, group=group)

    def step(self) -> None:
        OwnCopy.step(self)
        if self.steps_z:
            self.optimizer.step()
            self._multiply(self.weight)
        else:
            self._multiply(self.weight)
            self.optimizer.step()
        self._average()
        self._multiply(1 / self.weight)
        if self.weight < SMALLEST:
            self.log[-1] = {rank: share / self.weight.item() for rank, share in self.log[-1].items()}
            self.weight.fill_(1)

    @property
    def steps_z(self) -> bool:
        """Whether the optimizer steps the model that computes, and not x."""
        return bool(self.lost) or self.weight.item() < 1 / (2 * self.group.size())

    @torch.no_grad()
    def _multiply(self, factor: Tensor) -> None:
        for parameter in self.trained.values():
            parameter.mul_(factor)

    def _weights(self, sent: set[int], received: set[int]) -> dict[int, float]:
        """``{rank: share}`` of what enters the sum. This rank keeps the shares for ranks that it could not reach."""
        row = self.graph.row(self._rank, self.round)
        came = {rank: weight for rank, weight in row.items() if rank in received or rank == self._rank}
        given = self.graph.weights(self.round)[:, self._rank]
        unreached = set(self.graph.receivers(self._rank, self.round)) - sent
        came[self._rank] += sum(float(given[rank]) for rank in sorted(unreached))
        return came

    def _check_graph(self, graph: Graph) -> None:
        graph.check_columns()

    def _travels(self) -> list[Tensor]:
        self.weight = self.weight.to(self.device)
        return [self.weight, *self.trained.values()]

    def _weight(self) -> float:
        return self.weight.item()
