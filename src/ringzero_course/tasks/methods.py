"""Ways to train on several ranks, side by side on one small task: what each sends, how long it takes, what it learns.

``METHODS`` names them, data parallelism first. ``train`` runs one on each rank, and ``Method.sent`` says what all ranks
together should send. The task is any module like ``ringzero_course.tasks.characters``.
"""

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, prod
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.nn import Module

from ringzero.costs import compression as compressed
from ringzero.costs import gossip as gossiped
from ringzero.costs import local as kept_local
from ringzero.costs import server as served
from ringzero.data_parallel import DistributedDataParallel
from ringzero.record import recorded
from ringzero.unsynced import graphs
from ringzero.unsynced.compression import QSGD, OneBitAdam, PowerSGD, RandomK, SignMajority, TopK
from ringzero.unsynced.gossip import Gossip
from ringzero.unsynced.line import HEAD_BYTES, POSTED
from ringzero.unsynced.local import DiLoCo, LocalSGD, layers_of
from ringzero.unsynced.local import cut as fragments_of
from ringzero.unsynced.own_copy import OwnCopy
from ringzero.unsynced.pairwise import Pairwise
from ringzero.unsynced.parameter_server import ParameterServer
from ringzero.unsynced.push_sum import PushSum
from ringzero.unsynced.rules import BoundedStaleness, Rule
from ringzero_course.tasks import characters

LR, MOMENTUM, ADAM_LR, SIGN_LR = 0.1, 0.9, 3e-3, 2e-3
EVERY, SERVER_SLICE = 8, 256 * 1024
WARM_UP = 0.15  # the share of 1-bit Adam's steps, as in its paper

Shapes = Sequence[tuple[int, ...]]


class Point(NamedTuple):
    """After ``step`` steps: the loss on held-out data, what this rank has sent, and how long training took."""

    step: int
    loss: float
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Method:
    """``make(model, steps)`` makes a trainer on each rank; ``sent(shapes, ranks, steps)`` is in bytes, of all ranks."""

    make: Callable[[Module, int], Any]
    sent: Callable[[Shapes, int, int], float]


class Averaged:
    """A ``DistributedDataParallel`` and its optimizer, or an optimizer that averages by itself, as a trainer."""

    def __init__(self, module: Module, optimizer: torch.optim.Optimizer):
        self.module, self.optimizer = module, optimizer

    def __call__(self, *inputs: Any) -> Any:
        return self.module(*inputs)

    def step(self) -> None:
        self.optimizer.step()

    def finish(self) -> None:
        pass


def train(name: str, steps: int, points: int = 6, seed: int = 0, task: Any = characters) -> list[Point]:
    """On each rank: train by ``METHODS[name]``; at ``points`` moments the loss of the mean model of all ranks."""
    rank, n = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1000 * seed + rank)
    model = task.Model()
    trainer = METHODS[name].make(model, steps)
    forward = model if isinstance(trainer, OwnCopy) else trainer
    looked_at, curve, seconds = copy.deepcopy(model), [], 0.0
    begun = len(recorded())
    for part in range(points):
        dist.barrier()
        start = time.perf_counter()
        for step in range(steps * part // points, steps * (part + 1) // points):
            task.loss(forward, task.batch(step, rank, n, seed)).backward()
            trainer.step()
            model.zero_grad()
        if part == points - 1 and isinstance(trainer, OwnCopy):
            trainer.finish()
        took = torch.tensor(time.perf_counter() - start, dtype=torch.float64)
        dist.all_reduce(took, op=dist.ReduceOp.MAX)
        seconds += took.item()
        sent = sum(each.bytes for each in recorded()[begun:] if each.kind == "send")
        for parameter, mean in zip(model.parameters(), looked_at.parameters(), strict=True):
            mean.data.copy_(parameter.detach() / n)
            dist.all_reduce(mean.data)  # no message of its own, and so not counted
        loss = task.held_out_loss(looked_at) if rank == 0 else inf
        curve.append(Point(steps * (part + 1) // points, loss, sent, seconds))
    if not isinstance(trainer, OwnCopy):
        trainer.finish()
    return curve


def merged(returns: Sequence[Sequence[Sequence[float]]]) -> list[Point]:
    """The ranks' curves as one: rank 0's losses, what all ranks have sent."""
    return [
        Point(int(of_ranks[0][0]), of_ranks[0][1], int(sum(each[2] for each in of_ranks)), of_ranks[0][3])
        for of_ranks in zip(*returns, strict=True)
    ]


# ---- how they are made


def _sgd(model: Module, lr: float = LR, momentum: float = MOMENTUM) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)


def _ddp(model: Module, _steps: int, *, lr: float = LR, momentum: float = MOMENTUM, adam: bool = False,
         **options: Any) -> Averaged:  # fmt: skip
    options = options or {"algorithm": "ring"}
    if "compressor" in options:
        options["compressor"] = options["compressor"]()
    optimizer = torch.optim.Adam(model.parameters(), lr=ADAM_LR) if adam else _sgd(model, lr, momentum)
    return Averaged(DistributedDataParallel(model, **options), optimizer)


def _server(model: Module, _steps: int, rule: Callable[[], Rule] | None = None, **options: Any) -> ParameterServer:
    sgd = partial(torch.optim.SGD, lr=LR, momentum=MOMENTUM)
    return ParameterServer(model, sgd, rule=rule and rule(), slice_bytes=SERVER_SLICE, **options)


def _own(kind: Callable[..., OwnCopy], model: Module, _steps: int, *, lr: float = LR, graph: Any = None,
         **options: Any) -> OwnCopy:  # fmt: skip
    if graph is not None:
        options["graph"] = graph(dist.get_world_size())
    return kind(model, _sgd(model, lr), **options)


def _one_bit(model: Module, steps: int) -> Averaged:
    for parameter in model.parameters():
        dist.broadcast(parameter.detach(), 0)
    return Averaged(model, OneBitAdam(model.parameters(), lr=ADAM_LR, warmup_steps=_warm_up(steps)))


def _warm_up(steps: int) -> int:
    return max(1, round(WARM_UP * steps))


# ---- what they send


def _numel(shapes: Shapes) -> int:
    return sum(prod(shape) for shape in shapes)


def _each_step(by_rank: Callable[[int, int], Sequence[float]]) -> Callable[[Shapes, int, int], float]:
    """Of ``by_rank(numel, ranks)``, the bytes that each rank sends in a step."""
    return lambda shapes, n, steps: steps * sum(by_rank(_numel(shapes), n))


def _through_servers(servers: int, shapes: Shapes, n: int, steps: int) -> float:
    servers = min(servers, n)
    sizes = served.slice_sizes(_numel(shapes), servers, SERVER_SLICE)
    return sum(sent for sent, _ in served.exchanged_bytes(sizes, n, servers, steps=steps))


def _averages(shapes: Shapes, n: int, steps: int) -> float:
    """Local SGD's, the one at the end among them."""
    return -(-steps // EVERY) * n * kept_local.outer_step_bytes(_numel(shapes), n)


def _outer_steps(every: int, bits: int, fragments: int, shapes: Shapes, n: int, steps: int) -> float:
    sizes = [
        sum(p.numel() for layer in part for p in layer) for part in fragments_of(layers_of(_like(shapes)), fragments)
    ]
    total = 0.0
    for number, size in enumerate(sizes):
        offset = number * every // fragments
        turns = sum((step - offset) % every == 0 for step in range(1, steps + 1))
        total += turns * n * kept_local.outer_step_bytes(size, n, bits)
    return total


def _like(shapes: Shapes) -> Module:
    """A module with parameters of these shapes, in the layers that they have in ``Linear`` and ``Embedding``."""
    module, layers = torch.nn.Module(), list[list[tuple[int, ...]]]()
    for shape in shapes:
        if len(shape) == 1 and layers and len(layers[-1]) == 1:
            layers[-1].append(shape)
        else:
            layers.append([shape])
    for number, layer in enumerate(layers):
        part = torch.nn.Module()
        for place, shape in enumerate(layer):
            part.register_parameter(f"p{place}", torch.nn.Parameter(torch.empty(shape)))
        module.add_module(str(number), part)
    return module


def _to_neighbours(topology: str, more: int, shapes: Shapes, n: int, steps: int) -> float:
    return steps * sum(gossiped.gossip_bytes(topology, n, 4 * _numel(shapes) + more))


def _in_pairs(shapes: Shapes, n: int, steps: int) -> float:
    """A question and an answer in each step of an even rank, and the heads that close the lines."""
    asking, answering = (n + 1) // 2, n // 2
    closing = asking * answering * (1 + 2 * POSTED) * HEAD_BYTES
    return (steps * asking * 2 * (4 * _numel(shapes) + HEAD_BYTES) if answering else 0) + closing


def _in_two_phases(shapes: Shapes, n: int, steps: int) -> float:
    warm_up = _warm_up(steps)
    phases = {True: warm_up, False: steps - warm_up}
    return sum(count * sum(compressed.one_bit_adam_bytes(_numel(shapes), n, which)) for which, count in phases.items())


_DENSE = _each_step(compressed.dense_bytes)

METHODS: dict[str, Method] = {
    "DDP": Method(_ddp, _DENSE),
    "DDP, Adam": Method(partial(_ddp, adam=True), _DENSE),
    "server": Method(_server, partial(_through_servers, 1)),
    "sharded server": Method(partial(_server, servers=2), partial(_through_servers, 2)),
    "asynchronous": Method(partial(_server, rule=BoundedStaleness), partial(_through_servers, 1)),
    "staleness 2": Method(partial(_server, rule=partial(BoundedStaleness, 2)), partial(_through_servers, 1)),
    "local SGD": Method(partial(_own, LocalSGD, every=EVERY, algorithm="ring"), _averages),
    "DiLoCo": Method(partial(_own, DiLoCo, every=2 * EVERY, algorithm="ring"), partial(_outer_steps, 2 * EVERY, 32, 1)),
    "streaming DiLoCo": Method(
        partial(_own, DiLoCo, every=2 * EVERY, fragments=2, delay=2, mixing=0.5, bits=4),
        partial(_outer_steps, 2 * EVERY, 4, 2),
    ),
    "gossip, ring": Method(partial(_own, Gossip, graph=graphs.ring), partial(_to_neighbours, "ring", 0)),
    "gossip, one peer": Method(
        partial(_own, Gossip, graph=graphs.one_peer_exponential), partial(_to_neighbours, "one_peer_exponential", 0)
    ),
    "push-sum": Method(
        partial(_own, PushSum, graph=graphs.one_peer_exponential), partial(_to_neighbours, "one_peer_exponential", 8)
    ),
    "pairs": Method(partial(_own, Pairwise), _in_pairs),
    "top 1 %": Method(
        partial(_ddp, compressor=partial(TopK, 0.01)), _each_step(partial(compressed.top_k_bytes, ratio=0.01))
    ),
    "random 10 %": Method(
        partial(_ddp, compressor=partial(RandomK, 0.1)), _each_step(partial(compressed.random_k_bytes, ratio=0.1))
    ),
    "4-bit QSGD": Method(
        partial(_ddp, compressor=partial(QSGD, 4)), _each_step(partial(compressed.qsgd_bytes, bits=4))
    ),
    "majority of signs": Method(
        partial(_ddp, compressor=SignMajority, lr=SIGN_LR, momentum=0.0), _each_step(compressed.sign_bytes)
    ),
    "PowerSGD, rank 2": Method(
        partial(_ddp, compressor=partial(PowerSGD, 2)),
        lambda shapes, n, steps: steps * sum(compressed.powersgd_bytes([*shapes], n, 2)),
    ),
    "1-bit Adam": Method(_one_bit, _in_two_phases),
}
