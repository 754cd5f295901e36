"""Random programs that are right on NCCL, and so under ``strict`` too: collectives, batches, groups, streams, compute.

Every rank makes the same random choices, so all issue in one order. Numbers are whole and small: every order of
summation gives the same bits, on gloo as under ``strict``.
"""

import random
from collections.abc import Callable

import torch
import torch.distributed as dist

import ringzero.collectives as collectives

STEPS = 8


def play(seeds: list[int]) -> list[torch.Tensor]:
    """On a rank: one program a seed. Returns what the program's tensors hold at its end."""
    groups = [dist.group.WORLD, dist.new_group(list(range(dist.get_world_size())))]
    return [Program(seed, groups).run() for seed in seeds]


class Program:
    """``STEPS`` random steps on four tensors. What is asynchronous is waited for before its tensors are used."""

    def __init__(self, seed: int, groups: list):
        self._random = random.Random(seed)
        self._groups = groups
        self._rank, self._n = dist.get_rank(), dist.get_world_size()
        size = self._n * self._random.randint(1, 40)
        mine = torch.Generator().manual_seed(seed * 64 + self._rank)
        self._tensors = [torch.randint(-3, 4, (size,), generator=mine, device="cpu").double() for _ in range(4)]
        self._open: list[tuple[set, list]] = []  # (which tensors are in use, what to wait for)

    def run(self) -> torch.Tensor:
        for _ in range(STEPS):
            which, other = self._random.sample(range(4), 2)
            self._settle({which, other})
            self._random.choice(STEP_KINDS)(self, which, other)
            if self._random.random() < 0.3:
                self._settle(range(4))
        self._settle(range(4))
        return torch.stack(self._tensors).clamp(-(2**40), 2**40)

    def _settle(self, which):
        for used, works in self._open:
            if used & set(which):
                for work in works:
                    work.wait()
        self._open = [(used, works) for used, works in self._open if not used & set(which)]

    def _group(self):
        return self._random.choice(self._groups)

    def _reduce(self, which, other):
        x, op = self._tensors[which], self._random.choice((dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN))
        work = dist.all_reduce(x, op=op, group=self._group(), async_op=self._random.random() < 0.6)
        self._open += [({which}, [work])] if work is not None else []

    def _hand_round(self, which, other):
        x, y = self._tensors[which], self._tensors[other]
        shift, n = self._random.randint(1, max(1, self._n - 1)), self._n
        if n == 1:
            return
        group = self._group()
        batch = [
            dist.P2POp(dist.isend, x, group=group, group_peer=(self._rank + shift) % n),
            dist.P2POp(dist.irecv, y, group=group, group_peer=(self._rank - shift) % n),
        ]
        self._open += [({which, other}, dist.batch_isend_irecv(self._random.choice((batch, batch[::-1]))))]

    def _down_the_line(self, which, other):
        """Each rank receives from the one before and sends to the one after: no circle, so no batch is needed."""
        x, group = self._tensors[which], self._group()
        if self._rank > 0:
            dist.recv(x, group=group, group_src=self._rank - 1)
        if self._rank < self._n - 1:
            dist.send(x + 1, group=group, group_dst=self._rank + 1)

    def _shard(self, which, other):
        x, y, group = self._tensors[which], self._tensors[other], self._group()
        shard = torch.empty(x.numel() // self._n, dtype=x.dtype)
        dist.reduce_scatter(shard, list(x.chunk(self._n)), group=group)
        dist.all_gather(list(y.chunk(self._n)), shard, group=group)

    def _to_all(self, which, other):
        works = [dist.all_to_all_single(self._tensors[other], self._tensors[which], group=self._group(), async_op=True)]
        self._open += [({which, other}, works)]

    def _from_a_root(self, which, other):
        root, group = self._random.randrange(self._n), self._group()
        dist.broadcast(self._tensors[which], group_src=root, group=group)
        dist.reduce(self._tensors[other], group_dst=root, group=group)
        dist.broadcast(self._tensors[other], group_src=root, group=group)

    def _objects(self, which, other):
        everyone: list = [None] * self._n
        dist.all_gather_object(everyone, float(self._tensors[which][0]), group=self._group())
        self._tensors[which][0] = sum(everyone)

    def _ringzeros(self, which, other):
        name = self._random.choice(list(collectives.ALGORITHMS["all_reduce"]))
        collectives.all_reduce(self._tensors[which], algorithm=name, group=self._group())

    def _compute(self, which, other):
        self._tensors[which].add_(self._tensors[other]).remainder_(11)

    def _beside(self, which, other):
        """A second stream computes and communicates; the first one waits for it."""
        streams = torch.get_device_module(self._tensors[which].device)
        side = streams.Stream()
        if self._random.random() < 0.5:
            side.wait_stream(streams.current_stream())
        else:
            ready = streams.Event()
            ready.record()
            side.wait_event(ready)
        with streams.stream(side):
            self._tensors[which].mul_(2).remainder_(7)
            dist.all_reduce(self._tensors[which], group=self._group())
            self._tensors[which].sub_(1)
        streams.current_stream().wait_stream(side)

    def _halves(self, which, other):
        """Two views of one tensor that share no element: one travels, the other is computed with."""
        x = self._tensors[which]
        half = x.numel() // 2
        work = dist.all_reduce(x[:half], group=self._group(), async_op=True)
        x[half:].mul_(3).remainder_(5)
        work.wait()
        x[:half].remainder_(9)


STEP_KINDS: tuple[Callable, ...] = (
    Program._reduce, Program._hand_round, Program._down_the_line, Program._shard, Program._to_all, Program._from_a_root,
    Program._objects, Program._ringzeros, Program._compute, Program._beside, Program._halves,
)  # fmt: skip
