"""Run a schedule on real ranks: point-to-point messages over ``torch.distributed``.

The order of messages, and what each waits for, is worked out once (see ``program``). What has to be reduced lands in
scratch memory that is kept from call to call: fresh memory costs a page fault every 4 KiB, and these take as long as
the message itself.
"""

import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakSet

import torch
import torch.distributed as dist

from ringzero.collectives import agree, event_threads
from ringzero.collectives.agree import Header
from ringzero.collectives.messages import SEGMENT_BYTES
from ringzero.collectives.program import LANDINGS, Combine, Program, Receive, Send, Wait, program
from ringzero.collectives.schedule import Schedule
from ringzero.record import wire

REDUCE = {
    "sum": torch.add,
    "avg": torch.add,  # the caller scales before and after
    "product": torch.mul,
    "max": torch.maximum,
    "min": torch.minimum,
}
_CPU = torch.device("cpu")

Splits = tuple[tuple[int, ...], tuple[int, ...]]


def run(
    schedule: Schedule,
    input: torch.Tensor,
    op: str = "sum",
    group: dist.ProcessGroup | None = None,
    *,
    output: torch.Tensor | None = None,
    splits: Splits | None = None,
) -> None:
    """Run ``schedule`` on ``input``, this rank's 1-D contiguous buffer: in place, but for an all-to-all to ``output``.

    ``splits`` are two tuples, how many elements of an all-to-all go to each rank and how many come from each; without
    them ``input`` holds N chunks (``chunk_bounds``). With ``splits`` only the two ends of a chunk know its size, so the
    schedule must send every chunk directly.

    Raises ValueError when a rank that it exchanges messages with calls something else (another collective, algorithm or
    ``op``) or brings another size or type. That is checked on the CPU, the first time this call is made in the group
    (see ``agree``); over NCCL the check would cost too much.
    """
    members: Any = group or dist.group.WORLD
    if not needs_the_host(input.device, members):
        _run_here(schedule, input, op, members, output, splits)
        return
    result = input if output is None else output
    copy = result.to("cpu", copy=True)
    brought, arrives = (copy, None) if output is None else (input.to("cpu"), copy)
    _run_here(schedule, brought, op, members, arrives, splits)
    result.copy_(copy)


def needs_the_host(device: torch.device, group: dist.ProcessGroup) -> bool:
    """Whether ``device`` is a GPU and the group cannot send from there, as gloo cannot."""
    return device.type == "cuda" and "nccl" not in dist.get_backend_config(group)


def device_of(group: dist.ProcessGroup) -> torch.device:
    """Where the group's messages lie: on the GPU for a group with NCCL alone."""
    return torch.device("cuda" if _CPU not in group._device_types else "cpu")


def _run_here(schedule, input, op, group, output, splits):
    grouped = wire.goes_in_groups(group, input.is_cuda)
    call = _call(schedule, group.rank(), splits or input.numel(), input.dtype, op, grouped)
    messenger = _Grouped(call, group) if grouped else _Eager(call, group, splits)
    scratch = _take_scratch(call.program.scratch, input, keep=not grouped)
    memory = (input, output, scratch)
    for step in call.program.steps:
        kind = type(step)
        if kind is Receive:
            messenger.receive(_view(memory, step.into), step.peer)
        elif kind is Send:
            messenger.send(_view(memory, step.source), step.peer)
        elif kind is Wait:
            messenger.wait(step.request)
        elif kind is Combine:
            mine, theirs = _view(memory, step.into), _view(memory, step.arrived)
            first, second = (mine, theirs) if step.kept_first else (theirs, mine)
            call.reduce(first, second, out=mine)
        else:
            _view(memory, step.into).copy_(_view(memory, step.source))
    if not grouped:
        _keep_scratch(scratch)


def _view(memory, place):
    buffer, start, stop = place
    return memory[buffer][start:stop]


class _Call(NamedTuple):
    """What is worked out before a call is made; ``called`` says it in words, for the record."""

    program: Program
    reduce: Callable
    header: Header
    tag: int
    called: str


@lru_cache(maxsize=256)
def _call(schedule, rank, sizes, dtype, op, by_round):
    known_to_all = isinstance(sizes, int)
    header = Header.of(schedule, op, sizes if known_to_all else "any", dtype)
    elements = sizes if known_to_all else sum(sizes[0])
    return _Call(
        program(schedule, rank, sizes, dtype.itemsize, by_round),
        REDUCE[op],
        header,
        wire.data_tag(header),
        f"{header.called} of {elements} elements of {dtype}, {schedule.name}",
    )


class _Eager:
    """CPU: each message is a request of its own. The tag of data depends on the call, so other calls' never meet it."""

    def __init__(self, call, group, splits):
        self._messenger, self._tag, self._requests = _messenger(group, call), call.tag, []
        agree.check_headers(self._messenger, group, call.header, call.program, splits)

    def receive(self, into, peer):
        self._requests.append(self._messenger.recv([into], peer, self._tag))

    def send(self, source, peer):
        self._requests.append(self._messenger.send([source], peer, self._tag))

    def wait(self, request):
        self._requests[request].wait()


_calmed: WeakSet[dist.ProcessGroup] = WeakSet()


def _messenger(group, call):
    """What sends and receives the call's messages."""
    if group not in _calmed:
        event_threads.calm()
        _calmed.add(group)
    if type(group) is dist.ProcessGroup:  # its backend itself: torch's dispatcher takes microseconds a message
        return group._get_backend(_CPU)
    return wire.begin_call(group, call.called, call.tag)  # a group written in Python, such as one that records


class _Grouped:
    """GPU: the messages of a round go out as one group, the only way in which NCCL cannot deadlock.

    They go as bytes, since NCCL does not know every type. The stream waits, not the CPU: reductions queue up behind
    the messages.
    """

    def __init__(self, call, group):
        self._group, self._messenger = group, wire.begin_call(group, call.called, call.tag)
        self._round: list[tuple] = []  # messages of this round: (send or recv, tensor, peer)

    def receive(self, into, peer):
        self._round.append((self._messenger.recv, into.view(torch.uint8), peer))

    def send(self, source, peer):
        self._round.append((self._messenger.send, source.view(torch.uint8), peer))

    def wait(self, request):
        if not self._round:
            return
        device = self._round[0][1].device
        self._group._start_coalescing(device)
        try:
            for post, tensor, peer in self._round:
                post([tensor], peer, 0)
        finally:
            together = self._group._end_coalescing(device)
        self._round = []
        together.wait()


class _OfThread(threading.local):
    """``scratch``: memory that this thread's last call used."""

    scratch: torch.Tensor | None = None


_mine = _OfThread()


def _take_scratch(elements, like, keep):
    """``elements`` of scratch memory beside ``like`` and of its type: that of the last call, if it is large enough.

    Without ``keep`` it is new: on a GPU it may be in use until the stream comes so far.
    """
    if not keep or not elements:
        return like.new_empty(elements)
    kept, _mine.scratch = _mine.scratch, None  # a call that fails keeps none: messages may still arrive in it
    size = elements * like.element_size()
    if kept is None or kept.numel() < size:
        whole = -(-size // 64) * 64  # a whole number of elements of any type
        kept = torch.empty(whole, dtype=torch.uint8, device="cpu")
    return kept.view(like.dtype)


def _keep_scratch(buffer):
    if 0 < buffer.nbytes <= LANDINGS * SEGMENT_BYTES:
        _mine.scratch = buffer.view(torch.uint8)


def forget_scratch() -> None:
    """Give back the scratch memory that this thread keeps from one call to the next."""
    _mine.scratch = None
