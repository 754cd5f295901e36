"""Run a schedule on real ranks: point-to-point messages over ``torch.distributed``.

The order of messages, and what each waits for, is worked out once (see ``program``). What has to be reduced lands in
scratch memory that is kept from call to call: fresh memory costs a page fault every 4 KiB, and these take as long as
the message itself.
"""

import threading
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary
from zlib import crc32

import torch
import torch.distributed as dist

from ringzero.collectives import event_threads
from ringzero.collectives.program import LANDINGS, SEGMENT_BYTES, Combine, Program, Receive, Send, Wait, program
from ringzero.collectives.schedule import COLLECTIVES, Schedule
from ringzero.record import wire
from ringzero.record.wire import HEADER_TAG

REDUCE = {
    "sum": torch.add,
    "avg": torch.add,  # the caller scales before and after
    "product": torch.mul,
    "max": torch.maximum,
    "min": torch.minimum,
}


def run(schedule: Schedule, flat: torch.Tensor, op: str = "sum", group: dist.ProcessGroup | None = None) -> None:
    """Run ``schedule`` in place on ``flat``, this rank's 1-D contiguous buffer.

    Raises ValueError when a rank that it exchanges messages with calls something else (another collective, algorithm or
    ``op``) or brings another size or type. That is checked on the CPU, the first time this call is made in the group
    (see ``_Eager``); over NCCL the check would cost too much.
    """
    _run(schedule, (flat,), flat.numel(), op, group or dist.group.WORLD)


def run_all_to_all(
    schedule: Schedule,
    output: torch.Tensor,
    input: torch.Tensor,
    splits: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
    group: dist.ProcessGroup | None = None,
) -> None:
    """Run an all-to-all from the 1-D buffer ``input`` to ``output``; errors as in ``run``.

    ``splits`` are two tuples, how many elements go to each rank and how many come from each; without them ``input``
    holds N chunks (``chunk_bounds``). With ``splits`` only the two ends of a chunk know its size, so the schedule must
    send every chunk directly.
    """
    _run(schedule, (input, output), splits or input.numel(), "sum", group or dist.group.WORLD)


def _run(schedule, memory, sizes, op, group):
    if not needs_the_host(memory[0].device, group):
        return _run_here(schedule, memory, sizes, op, group)
    copies = [buffer.to("cpu", copy=True) for buffer in memory]
    _run_here(schedule, copies, sizes, op, group)
    for buffer, copy in zip(memory, copies, strict=True):
        buffer.copy_(copy)


def needs_the_host(device: torch.device, group: dist.ProcessGroup) -> bool:
    """Whether ``device`` is a GPU and the group cannot send from there, as gloo cannot."""
    return device.type == "cuda" and "nccl" not in dist.get_backend_config(group)


def device_of(group: dist.ProcessGroup) -> torch.device:
    """Where the group's messages lie: on the GPU for a group with NCCL alone."""
    return torch.device("cuda" if torch.device("cpu") not in group._device_types else "cpu")


def _run_here(schedule, memory, sizes, op, group):
    grouped = wire.goes_in_groups(group, memory[0].is_cuda)
    call = _call(schedule, group.rank(), sizes, memory[0].dtype, op, grouped)
    messenger = (_Grouped if grouped else _Eager)(call, group)
    scratch = _take_scratch(call.program.scratch, memory[0], keep=not grouped)
    memory = (*memory, None, scratch) if len(memory) == 1 else (*memory, scratch)
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
    messenger.end()
    if not grouped:
        _keep_scratch(scratch)


def _view(memory, place):
    buffer, start, stop = place
    return memory[buffer][start:stop]


class _Call(NamedTuple):
    """What is worked out before a call is made. A header is two numbers: elements, and the ``_code`` of the call."""

    program: Program
    reduce: object
    tag: int
    signature: tuple[int, int]
    called: str
    headers: list[tuple[int, torch.Tensor]]  # rank to send to, header
    expected: dict[int, list[int]]  # rank to receive from -> header
    check_first: bool


@lru_cache(maxsize=256)
def _call(schedule, rank, sizes, dtype, op, by_round):
    made, code = program(schedule, rank, sizes, dtype.itemsize, by_round), _code(schedule, op, dtype)
    headers = [(peer, torch.tensor([elements, code], device="cpu")) for peer, elements in made.sends_to.items()]
    expected = {peer: [elements, code] for peer, elements in made.receives_from.items()}
    known_to_all = isinstance(sizes, int)
    signature = (sizes if known_to_all else -1, code)
    tag = wire.data_tag(signature)
    called = f"{_called(code)} of {sizes if known_to_all else sum(sizes[0])} elements of {dtype}, {schedule.name}"
    return _Call(made, REDUCE[op], tag, signature, called, headers, expected, check_first=not known_to_all)


class _Eager:
    """CPU: each message is a request of its own.

    Beside the data, which does not wait for it, each rank sends a header that says what it calls and brings. The tag of
    the data depends on the header too, so buffers that do not match never meet. (gloo would end the process if a larger
    buffer arrived in a smaller one, and would say nothing the other way round.) A header takes a third of the time of a
    small message, so the same call is checked only once. A rank that later makes another call hangs, and
    ``ringzero.launch`` says why.
    """

    def __init__(self, call, group):
        known = _known.get(group) or _get_to_know(group)
        self._group, self._call, self._agreed = group, call, known.agreed
        self._messenger = (known.begin_call or wire.begin_call(group))(call.called)
        self._requests, self._headers = [], None
        if (call.headers or call.expected) and call.signature not in self._agreed:
            self._send_headers()

    def receive(self, into, peer):
        self._requests.append(self._messenger.recv([into], peer, self._call.tag))

    def send(self, source, peer):
        self._requests.append(self._messenger.send([source], peer, self._call.tag))

    def wait(self, request):
        if self._headers:
            self._check_headers()
        self._requests[request].wait()

    def end(self):
        if self._headers:
            self._check_headers()

    def _send_headers(self):
        expected = self._call.expected
        self._arrived = torch.empty(len(expected), 2, dtype=torch.int64, device="cpu")
        self._headers = [
            self._messenger.recv([row], peer, HEADER_TAG) for row, peer in zip(self._arrived, expected, strict=True)
        ]
        self._headers += [self._messenger.send([header], peer, HEADER_TAG) for peer, header in self._call.headers]
        if self._call.check_first:
            self._check_headers()

    def _check_headers(self):
        """Raise ValueError unless every rank we receive from calls what we call."""
        for work in self._headers:
            work.wait()
        self._headers = None
        for (peer, expected), header in zip(self._call.expected.items(), self._arrived.tolist(), strict=True):
            if header != expected:
                raise ValueError(_difference(self._group.rank(), expected, peer, header))
        if not self._call.check_first:
            self._agreed.add(self._call.signature)


class _Grouped:
    """GPU: the messages of a round go out as one group, the only way in which NCCL cannot deadlock.

    They go as bytes, since NCCL does not know every type. The stream waits, not the CPU: reductions queue up behind
    the messages.
    """

    def __init__(self, call, group):
        self._group, self._messenger = group, wire.begin_call(group)(call.called)
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

    def end(self):
        pass


def _code(schedule, op, dtype):
    """A number that differs for calls that differ, and from which an error can read the names (``_called``)."""
    first = repr(schedule.rounds[0]) if len(schedule.rounds) else ""
    algorithm = crc32(f"{schedule.name} {schedule.chunks} {schedule.root} {len(schedule.rounds)} {first}".encode())
    names = (COLLECTIVES.index(schedule.collective), _OPS.index(op), _TYPES.index(dtype))
    return algorithm << 24 | names[0] << 16 | names[1] << 8 | names[2]


def _difference(rank, expected, peer, header):
    """The message of an error about two headers that differ."""
    (mine, my_code), (theirs, their_code) = expected, header
    if my_code >> 8 != their_code >> 8:
        calls = [_called(code) for code in (their_code, my_code)]
        more = ", but with another algorithm, root or number of chunks" if calls[0] == calls[1] else ""
        return (
            f"rank {peer} of the group called {calls[0]}, rank {rank} called {calls[1]}{more}; every rank must make "
            "the same calls in the same order"
        )
    types = [_TYPES[code & 255] for code in (their_code, my_code)]
    if COLLECTIVES[my_code >> 16 & 255] == "all_to_all":
        return (
            f"rank {peer} of the group sends {theirs} elements of {types[0]}, rank {rank} expects {mine} of "
            f"{types[1]}; input_split_sizes on the one must be output_split_sizes on the other"
        )
    return (
        f"rank {peer} of the group brought {theirs} elements of {types[0]}, rank {rank} brought {mine} of {types[1]}; "
        "every rank must pass a tensor of the same size and dtype"
    )


def _called(code):
    collective, op = COLLECTIVES[code >> 16 & 255], _OPS[code >> 8 & 255]
    return f'{collective}(op="{op}")' if "reduce" in collective else collective


_OPS = list(REDUCE)
_TYPES = sorted({value for value in vars(torch).values() if isinstance(value, torch.dtype)}, key=str)

_mine = threading.local()  # .scratch: memory that this thread's last call used


def _take_scratch(elements, like, keep):
    """``elements`` of scratch memory beside ``like`` and of its type: that of the last call, if it is large enough.

    Without ``keep`` it is new: on a GPU it may be in use until the stream comes so far.
    """
    if not keep or not elements:
        return like.new_empty(elements)
    kept, _mine.scratch = (
        getattr(_mine, "scratch", None),
        None,
    )  # not kept if this call fails, for messages may still arrive in it
    size = elements * like.element_size()
    if kept is None or kept.numel() < size:
        kept = torch.empty(
            -(-size // 64) * 64, dtype=torch.uint8, device="cpu"
        )  # a whole number of elements of any type
    return kept.view(like.dtype)


def _keep_scratch(buffer):
    if 0 < buffer.nbytes <= LANDINGS * SEGMENT_BYTES:
        _mine.scratch = buffer.view(torch.uint8)


def forget_scratch() -> None:
    """Give back the scratch memory that this thread keeps from one call to the next."""
    _mine.scratch = None


class _Known(NamedTuple):
    """Kept for each group: ``begin_call(called)`` returns what sends and receives; ``agreed`` are checked calls.

    ``begin_call`` is None for a group that is asked for it in each call: kept here, it would keep the group alive.
    """

    begin_call: object
    agreed: set


_known: WeakKeyDictionary[dist.ProcessGroup, _Known] = WeakKeyDictionary()  # group -> _Known


def _get_to_know(group):
    event_threads.calm()
    if type(group) is dist.ProcessGroup:  # its backend itself: torch's dispatcher takes microseconds a message
        backend = group._get_backend(torch.device("cpu"))
        _known[group] = _Known(lambda called: backend, set())
    else:  # a group written in Python, such as one that records: it gets every message
        _known[group] = _Known(None, set())
    return _known[group]
