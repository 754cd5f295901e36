"""Gossip: in each step a rank averages its model with its neighbours', and nobody waits for more than them.

Lian et al., "Can decentralized algorithms outperform centralized algorithms?" (D-PSGD, 2017). Rank i has the model x_i,
g is its gradient, and W are the weights of a mixing graph (``mixing``):

    x_i <- sum_j W[i, j] x_j - lr g(x_i)

The gradient is that of the model before the averaging, so models can travel while the forward and the backward pass
compute. With ``overlap=False`` the local step comes first, and its result is averaged:

    x_i <- sum_j W[i, j] (x_j - lr g(x_j))

In each round a rank sends its model once to each neighbour, whatever the number of ranks. The copies stay different;
``consensus_distance()`` says by how much.
"""

from typing import Any
from weakref import ref
from zlib import crc32

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Module
from torch.utils.hooks import RemovableHandle

from ringzero.record.eager import not_compiled
from ringzero.unsynced.end_to_end import Packed
from ringzero.unsynced.messages import Arrived, Messages
from ringzero.unsynced.mixing import Graph
from ringzero.unsynced.own_copy import OwnCopy


class Gossip(OwnCopy):
    """D-PSGD: ``module`` and ``optimizer`` as in ``OwnCopy``, averaged with the neighbours in ``graph`` in each step.

    ``overlap``  models travel while a forward pass of ``module`` that trains, and the backward pass, compute; the
                 optimizer then steps the averaged model. Otherwise it steps first
    ``log``      of each round ``{rank: weight}`` of the models that entered this rank's average, its own among them

    A step sends as many bytes as the trained parameters have to each of ``graph.receivers(rank, round)``.

    Over gloo the training survives the loss of ranks: the weight of a neighbour that is gone goes to the rank's own
    model, and ``lost`` names it. ``average()`` and ``consensus_distance()`` are then of the survivors. On a symmetric
    graph a round still leaves the mean model as it is. On a directed graph it does not; take ``PushSum`` there. Over
    NCCL a lost rank stops its neighbours for good.

    Raises ValueError as ``OwnCopy``, for a graph of another number of ranks, and for one whose rows and columns do not
    all sum to 1.
    """

    def __init__(self, module: Module, optimizer: torch.optim.Optimizer, graph: Graph, *, overlap: bool = True,
                 group: dist.ProcessGroup | None = None):  # fmt: skip
        _check_ranks(graph, group or dist.group.WORLD)
        self._check_graph(graph)
        named = f"{graph} with weights {crc32(graph.matrices.tobytes()):08x}"
        super().__init__(module, optimizer, group, graph=named, overlap=overlap)
        self.graph, self.overlap, self.log = graph, overlap, list[dict[int, float]]()
        self._rank = self.group.rank()
        self._messages = Messages(self.group, self.device)
        self._packed = Packed(self._travels())
        self._mine = self._packed.empty(self.device)
        most = max(len(graph.row(self._rank, round)) - 1 for round in range(graph.period))
        self._theirs = [self._packed.empty(self.device) for _ in range(most)]
        self._on_the_way: tuple[dict[int, Tensor], Arrived] | None = None
        self._rows: dict[tuple, dict[int, float]] = {}  # each different row once; the log refers to them
        self._hook: RemovableHandle | None = None
        self._look_ahead()

    @property
    def lost(self) -> set[int]:
        """Ranks of the group that this rank has found to be gone."""
        return self._messages.lost

    @property
    def round(self) -> int:
        """How many rounds are over; the next one has this number."""
        return len(self.log)

    def step(self) -> None:
        super().step()
        if self.overlap:
            self._average()
            self.optimizer.step()
        else:
            self.optimizer.step()
            self._average()
        self._look_ahead()

    def finish(self) -> None:
        if self._hook is not None:  # the module is the program's again
            self._hook.remove()
            self._hook = None
        if self._on_the_way is not None:  # there was a forward pass without a step
            self._average()

    def _look_ahead(self) -> None:
        """Have the module's next forward pass begin a round."""
        if self.overlap and self._hook is None:
            self._hook = self.module.register_forward_pre_hook(_starting(self))

    # ---- a round

    def _start(self) -> None:
        """Begin to exchange models with this round's neighbours."""
        self._packed.put(self._mine)
        senders = [rank for rank in self.graph.row(self._rank, self.round) if rank != self._rank]
        theirs = dict(zip(senders, self._theirs, strict=False))
        sends = dict.fromkeys(self.graph.receivers(self._rank, self.round), self._mine)
        self._own.in_use = True
        self._on_the_way = theirs, self._messages.start(sends, theirs)

    def _average(self) -> None:
        """Take the weighted mean of the models that have come and this rank's own."""
        if self._on_the_way is None:
            self._start()
        assert self._on_the_way is not None
        theirs, arrived = self._on_the_way
        sent, received = arrived()
        self._on_the_way, self._own.in_use = None, False
        weights = self._weights(sent, received)
        models = theirs | {self._rank: self._mine}
        self._packed.take_sum((weight, models[rank]) for rank, weight in weights.items())
        self.log.append(self._rows.setdefault(tuple(weights.items()), weights))

    def _weights(self, sent: set[int], received: set[int]) -> dict[int, float]:
        """``{rank: weight}`` of the models that enter the average. This rank's own gets the weights of missing ones."""
        row = self.graph.row(self._rank, self.round)
        came = {rank: weight for rank, weight in row.items() if rank in received or rank == self._rank}
        if len(came) < len(row):
            came[self._rank] += sum(weight for rank, weight in row.items() if rank not in came)
        return came

    # ---- what another rule of averaging changes

    def _check_graph(self, graph: Graph) -> None:
        graph.check_doubly_stochastic()

    def _travels(self) -> list[Tensor]:
        return list(self.trained.values())

    def _sum(self, vector: Tensor) -> Tensor:
        return self._messages.sum(vector)  # an all-reduce would not end without a lost rank


def _check_ranks(graph: Graph, group: Any) -> None:
    if not isinstance(graph, Graph):
        raise TypeError(f"graph is {graph!r}; give a Graph, such as graphs.ring({group.size()})")
    if graph.world_size != group.size():
        raise ValueError(f"{graph} is for {graph.world_size} ranks, the group has {group.size()}; make it for these")


def _starting(gossip: Gossip) -> Any:
    """A hook that begins a round when the module's forward pass begins. It does not keep ``gossip`` alive."""
    weak = ref(gossip)

    @not_compiled
    def hook(module: Module, _inputs: Any) -> None:
        gossip = weak()
        in_training = torch.is_grad_enabled() and module.training
        if gossip is not None and module is gossip.module and in_training and gossip._on_the_way is None:
            gossip._start()

    return hook
