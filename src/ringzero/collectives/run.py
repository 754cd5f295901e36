"""Run a schedule on real ranks: point-to-point messages over ``torch.distributed``, in place.

There is no barrier between rounds. A send waits only for what must have arrived in the chunk it reads,
and a chunk to be reduced lands in scratch memory that is kept from call to call: fresh memory costs a page
fault every 4 KiB, which at these speeds is as much as the message. A chunk above ``SEGMENT_BYTES`` travels in
several messages, so that a rank reduces one while the next is on its way and scratch memory stays bounded.
"""

import os
from collections import deque
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
import torch.distributed as dist

from ringzero.collectives.schedule import Schedule, chunk_bounds

SEGMENT_BYTES = 2 * 2**20
SCRATCH_SEGMENTS = 4  # landing places in use at once; the fifth arrival waits until one is reduced
HEADER_TAG = 2**30  # of the message that says how much a rank brings; data has smaller tags

REDUCE = {
    "sum": torch.Tensor.add_,
    "avg": torch.Tensor.add_,  # divided once, by the caller
    "product": torch.Tensor.mul_,
    "max": lambda mine, theirs: torch.maximum(mine, theirs, out=mine),
    "min": lambda mine, theirs: torch.minimum(mine, theirs, out=mine),
}


class Message(NamedTuple):
    """One transfer as one rank sees it: elements ``start:stop`` of its buffer, to or from ``peer``."""

    peer: int
    start: int
    stop: int
    reduce: bool


class Program(NamedTuple):
    """What one rank does: by round and segment, the messages it receives and those it sends; and with whom."""

    steps: list[tuple[list[Message], list[Message]]]
    receives_from: list[int]
    sends_to: list[int]


def run(schedule: Schedule, flat: torch.Tensor, op="sum", group=None):
    """Run ``schedule`` in place on ``flat``, this rank's 1-D contiguous buffer.

    Raises ValueError when a neighbour's buffer has another size or type (on the CPU; NCCL cannot tell cheaply).
    """
    group = group or dist.group.WORLD
    program = _program(schedule, group.rank(), flat.numel(), flat.element_size())
    execute = _run_grouped if flat.is_cuda else _run_eager
    execute(program, flat, REDUCE[op], group)


@lru_cache(maxsize=256)
def _program(schedule, rank, numel, element_size):
    bounds = chunk_bounds(numel, schedule.chunks)
    largest = -(-numel // schedule.chunks) * element_size
    segments = max(1, -(-largest // SEGMENT_BYTES))  # the same for every chunk, so that sender and receiver agree
    steps = []
    for round in schedule.rounds:
        mine = [t for t in round if rank in (t.src, t.dst)]
        for segment in range(segments):
            receives, sends = [], []
            for src, dst, chunk, reduce in mine:
                inner = chunk_bounds(int(bounds[chunk + 1] - bounds[chunk]), segments) + bounds[chunk]
                start, stop = int(inner[segment]), int(inner[segment + 1])
                if stop > start:
                    message = Message(src if dst == rank else dst, start, stop, reduce)
                    (receives if dst == rank else sends).append(message)
            if receives or sends:
                steps.append((receives, sends))
    receives_from = sorted({message.peer for receives, _ in steps for message in receives})
    sends_to = sorted({message.peer for _, sends in steps for message in sends})
    return Program(steps, receives_from, sends_to)


def _run_eager(program, flat, combine, group):
    """CPU: each message is a request of its own, waited for when a later message needs what it touches."""
    _let_the_caller_run(group)
    headers = _Headers(program, flat, group)
    arriving = {}  # start -> (work, target, landing): what is on its way into flat[start:]
    leaving = {}  # start -> work of the last send that reads flat[start:]
    landings = deque()  # starts of the arrivals that hold scratch memory, oldest first

    def sent(start):
        if (work := leaving.pop(start, None)) is not None:
            headers.check()
            work.wait()

    def settle(start):
        if (arrival := arriving.pop(start, None)) is not None:
            work, target, landing = arrival
            headers.check()
            work.wait()
            if landing is not None:
                sent(start)
                combine(target, landing[: target.numel()])
                landings.remove(start)
                _scratch_free(landing)

    for receives, sends in program.steps:
        before = [arriving.get(message.start) for message in sends]
        # Receives first: then the data has somewhere to go, and gloo sends it without asking again.
        for peer, start, stop, reduce in receives:
            settle(start)
            target, landing = flat[start:stop], None
            if reduce:
                if len(landings) == SCRATCH_SEGMENTS:
                    settle(landings[0])
                landing = _scratch(target)
                landings.append(start)
            else:
                sent(start)
            into = target if landing is None else landing[: stop - start]
            arriving[start] = (group.recv([into], peer, headers.tag), target, landing)
        for (peer, start, stop, _), arrival in zip(sends, before, strict=True):
            if arrival is not None and arriving.get(start) is arrival:
                settle(start)
            sent(start)
            leaving[start] = group.send([flat[start:stop]], peer, headers.tag)
    for start in list(arriving):
        settle(start)
    for start in list(leaving):
        sent(start)
    headers.check()


def _run_grouped(program, flat, combine, group):
    """GPU: the messages of a round go out as one group, the only order in which NCCL cannot deadlock.

    Waiting is the stream's business, so the reductions queue up behind the messages without stopping the CPU.
    """
    for receives, sends in program.steps:
        operations, landings = [], []
        for peer, start, stop, reduce in receives:
            target = flat[start:stop]
            into = torch.empty_like(target) if reduce else target
            operations.append(dist.P2POp(dist.irecv, into, group=group, group_peer=peer))
            if reduce:
                landings.append((target, into))
        for peer, start, stop, _ in sends:
            operations.append(dist.P2POp(dist.isend, flat[start:stop], group=group, group_peer=peer))
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        for target, landing in landings:
            combine(target, landing)


class _Headers:
    """Each rank tells those it sends to how much it brings, beside the data, which does not wait for it.

    The data's tag depends on size and type, so buffers that do not match never meet: gloo would end the process
    if the larger went into the smaller, and say nothing the other way round.
    """

    def __init__(self, program, flat, group):
        self._rank, self._mine = group.rank(), (flat.numel(), flat.dtype)
        self.tag, words = _signature(flat.numel(), flat.dtype)
        self._theirs = {peer: torch.empty_like(words) for peer in program.receives_from}
        self._works = [group.recv([words], peer, HEADER_TAG) for peer, words in self._theirs.items()]
        self._works += [group.send([words], peer, HEADER_TAG) for peer in program.sends_to]

    def check(self):
        """Raise ValueError unless every rank we receive from brings what we bring. Only the first call waits."""
        if not self._works:
            return
        for work in self._works:
            work.wait()
        self._works = []
        for peer, words in self._theirs.items():
            numel, code = words.tolist()
            if (numel, _TYPES[code]) != self._mine:
                raise ValueError(
                    f"rank {peer} of the group brought {numel} elements of {_TYPES[code]}, rank {self._rank} brought "
                    f"{self._mine[0]} of {self._mine[1]}; every rank must pass a tensor of the same size and dtype"
                )


@lru_cache(maxsize=256)
def _signature(numel, dtype):
    """The tag of the data and the words of the header for a buffer like this."""
    code = _TYPES.index(dtype)
    return (numel * len(_TYPES) + code) % HEADER_TAG, torch.tensor([numel, code])


_TYPES = sorted({value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str)

_free = []  # scratch buffers (uint8) not in use, kept for the next call


def _scratch(like):
    """A buffer at least as long as ``like``, of its dtype: a kept one, else a new one."""
    needed = like.numel() * like.element_size()
    for index, buffer in enumerate(_free):
        if buffer.numel() >= needed:
            return _free.pop(index).view(like.dtype)
    rounded = -(-needed // 64) * 64  # a whole number of elements of any type
    return torch.empty(rounded, dtype=torch.uint8).view(like.dtype)


def _scratch_free(buffer):
    _free.append(buffer.view(torch.uint8))
    _free.sort(key=torch.Tensor.numel)
    del _free[:-SCRATCH_SEGMENTS]


_calmed = set()  # groups whose event threads were seen to


def _let_the_caller_run(group):
    """Ask Linux that gloo's event thread not preempt the thread that works with it.

    The event thread polls sockets. While the caller holds a connection's lock it tries again at once, and again; if it
    took the caller's core at that moment, it burns its time slice, 3 to 4 ms, waiting for a thread it keeps from
    running. As a batch thread it takes an idle core, or waits until the caller sleeps: a small all-reduce of 4 ranks on
    2 cores then takes a fifth of the time. Needs no privilege; elsewhere than on Linux nothing happens.
    """
    key = (os.getpid(), id(group), group.group_name)
    if key in _calmed or not hasattr(os, "SCHED_BATCH"):
        return
    _calmed.add(key)
    set_event_threads(os.SCHED_BATCH)


def set_event_threads(policy):
    """Give gloo's event threads of this process a scheduling policy (``os.SCHED_BATCH``, ``os.SCHED_OTHER``)."""
    for task in Path("/proc/self/task").iterdir():
        try:
            if (task / "comm").read_text().strip() == "gloo_tcp_loop":
                os.sched_setscheduler(int(task.name), policy, os.sched_param(0))
        except OSError:  # the thread has ended, or a container forbids it
            pass
