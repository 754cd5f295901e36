"""See every use of a tensor: what torch computes in this process, and what the program reads.

Each operation runs on its thread's current stream. Before it runs, it is compared with what may still be on its way
(``accesses``); then the program is blocked until what it uses is really there. To block here changes nothing that a
program could notice on a GPU: all that this thread issues later on the stream would wait there too.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterable, Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ringzero.record.memory import before_marks
from ringzero.strict import streams
from ringzero.strict.accesses import Memory, StrictError
from ringzero.strict.pending import Pending

# Methods that hand values over without an operation of torch; pickle and torch.save call the last.
READS = ("tolist", "cpu", "numpy", "__array__", "__dlpack__", "__reduce_ex__")
WITHOUT_VALUES = ("empty", "new_", "_unsafe_view", "set_", "resize_")  # names that begin so
memory = Memory()
_issued: list[Pending] = []  # communication that nobody has waited for yet, or whose results are not copied
_lock = threading.Lock()  # of this list: threads issue side by side
_watches = False
_quiet = threading.local()  # .on: this thread's operations are strict's own


class Watching(TorchDispatchMode):
    """Active in each thread of a strict rank."""

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # which would take seconds to import

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(_quiet, "on", False):
            return func(*args, **kwargs)
        name = func.overloadpacket.__name__
        stream = streams.current_stream()
        number = stream.next()
        memory.check_dropped(stream)
        if not (name.startswith(WITHOUT_VALUES) or name.endswith("_like")):
            for tensor, writes in _arguments(func, args, kwargs):
                use(tensor, writes, stream, number, name)
        result = func(*args, **kwargs)
        leaves = tree_leaves(result)
        if not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            streams.host_learns(stream.clock)  # the program has the value, so the stream has come so far
        elif stream is not streams.DEFAULT:
            for leaf in leaves:
                if isinstance(leaf, torch.Tensor):
                    memory.made(leaf, stream)
                    use(leaf, True, stream, number, name)
        return result


def _arguments(func, args, kwargs):
    """``(tensor, whether it is written)`` of each tensor whose values the operation uses; a view only renames them."""
    for number, name, writes in _used_arguments(func):
        value = args[number] if number < len(args) else kwargs.get(name)
        for leaf in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(leaf, torch.Tensor):
                yield leaf, writes


@functools.cache
def _used_arguments(func):
    """``[(place, name, whether it is written)]`` of the arguments whose values the operation uses."""
    return [
        (number, argument.name, argument.alias_info is not None)
        for number, argument in enumerate(func._schema.arguments)
        if argument.alias_info is None or argument.alias_info.is_write
    ]


def use(tensor: torch.Tensor, writes: bool, stream: streams.Stream, number: int, what: str) -> None:
    """The program uses a tensor now. Raises StrictError where that is a race."""
    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        return
    for pending in memory.use(tensor, writes, stream, number, what):
        _settle(pending)


def used(pending: Pending, stream: streams.Stream, number: int) -> None:
    """Communication uses its tensors from now on."""
    # Outputs first: in memory that is both, the new use as input would hide who reads it now.
    for tensors, writes in ((pending.outputs, True), (pending.inputs, False)):
        for tensor in tensors:
            for earlier in memory.use(tensor, writes, stream, number, str(pending), pending):
                _settle(earlier)


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """What this thread does inside is strict's own."""
    before, _quiet.on = getattr(_quiet, "on", False), True
    try:
        yield
    finally:
        _quiet.on = before


def _settle(pending):
    with quietly():
        pending.settle()


def issued(entry: Iterable[Pending]) -> None:
    """Remember what has to be waited for before the program ends. Settle what was waited for and is over."""
    for pending in list(_issued):
        if pending.waited and pending.is_over():
            _settle(pending)
    with _lock:
        _issued[:] = [*(pending for pending in _issued if not (pending.waited and pending.settled)), *entry]


def _catch_up():
    """Release the tensors of all that the program has waited for: so a mark of memory does not count them."""
    for pending in list(_issued):
        if pending.waited:
            _settle(pending)


def finish() -> None:
    """The program has ended. Raises StrictError for communication that nobody waited for, and for what went wrong."""
    with _lock:
        all_issued = [*_issued]
        _issued.clear()
    for pending in all_issued:
        _settle(pending)
    for pending in all_issued:
        if not pending.waited:
            raise StrictError(f"nobody called wait() on {pending}: what it sends or fills may be in use at any time")
    streams.synchronize()


def start() -> None:
    """Watch this process, once: the thread that calls, and all that are started later."""
    global _watches
    if _watches:
        return
    _watches = True
    for name in ("Stream", "Event", "stream", "current_stream", "synchronize"):
        setattr(torch.cpu, name, getattr(streams, name))
    streams.block_with(_settle_known)
    before_marks.append(_catch_up)
    Watching().__enter__()
    for name in READS:
        setattr(torch.Tensor, name, _seeing(getattr(torch.Tensor, name)))
    for place, name, seen in (
        (torch.UntypedStorage, "resize_", _resizing),
        (torch.Tensor, "record_stream", _recording_stream),
        (threading.Thread, "_bootstrap_inner", _watched),
    ):
        setattr(place, name, seen(getattr(place, name)))


def _settle_known(clock):
    for pending in list(_issued):
        stream, number = pending.number
        if clock.get(stream, 0) >= number:
            _settle(pending)


def _seeing(read):
    @functools.wraps(read)
    def method(self, *args, **kwargs):
        if not getattr(_quiet, "on", False):
            stream = streams.current_stream()
            use(self, False, stream, stream.next(), read.__name__)
            streams.host_learns(stream.clock)
        return read(self, *args, **kwargs)

    return method


def _resizing(resize):
    @functools.wraps(resize)
    def resize_(self, size):
        # Also to the size it has: torch takes new memory then too, and gives the old back.
        if self.nbytes() and not getattr(_quiet, "on", False):
            whole = torch.empty(0, dtype=torch.uint8, device="cpu").set_(self, 0, (self.nbytes(),), (1,))
            stream = streams.current_stream()
            use(whole, True, stream, stream.next(), "to free its memory")
        return resize(self, size)

    return resize_


def _recording_stream(record_stream):
    @functools.wraps(record_stream)
    def method(self, stream):
        return memory.record_stream(self, stream) if isinstance(stream, streams.Stream) else record_stream(self, stream)

    return method


def _watched(bootstrap):
    def with_watching(self):
        with Watching():
            bootstrap(self)

    return with_watching
