"""Streams and events without a GPU: who knows that what is done.

A stream does one operation after another, and streams go on side by side. Each keeps a *clock*: of every stream, how
many operations are done by the time its own next one begins (a vector clock; Fidge 1988, Mattern 1989). Recording an
event keeps a clock, and waiting for it takes that clock over. Nothing here waits for anything: it only says who may
rely on what. These classes stand in for the empty ones of ``torch.cpu``, so a program written for any device, with
``torch.get_device_module(device)``, has streams under ``strict`` too.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Clock = dict["Stream", int]
_streams: weakref.WeakSet[Stream] = weakref.WeakSet()
_thread = threading.local()  # .stream: the current stream of this thread
_host: Clock = {}  # what the Python program itself has seen done: all that it issues later comes after it
_blockers: list[Callable[[Clock], None]] = []  # what blocks until the communication of a clock is over


def learn(clock: Clock, other: Clock) -> None:
    for stream, number in other.items():
        clock[stream] = max(clock.get(stream, 0), number)


def host_learns(clock: Clock) -> None:
    """The program has waited until all of ``clock`` was done."""
    learn(_host, clock)


def block_with(blocker: Callable[[Clock], None]) -> None:
    """Have ``blocker(clock)`` called where the program waits for an event, a stream, or everything."""
    _blockers.append(blocker)


def _block(clock):
    host_learns(clock)
    for blocker in _blockers:
        blocker(clock)


class Event:
    """A place in a stream, as ``torch.cuda.Event``."""

    def __init__(self, *_: object, **__: object):
        self._clock: Clock = {}

    def record(self, stream: Stream | None = None) -> None:
        self._clock = dict((stream or current_stream()).clock)

    def wait(self, stream: Stream | None = None) -> None:
        learn((stream or current_stream()).clock, self._clock)

    def synchronize(self) -> None:
        _block(self._clock)

    def query(self) -> bool:
        """True, after a wait: a program that asks again and again would come to it as well."""
        self.synchronize()
        return True


class Stream:
    """A queue of operations, as ``torch.cuda.Stream``."""

    def __init__(self, *_: object, **__: object):
        self.clock: Clock = {self: 0}
        _streams.add(self)

    def next(self) -> int:
        """Begin an operation: its number in this stream."""
        learn(self.clock, _host)
        self.clock[self] += 1
        return self.clock[self]

    def knows(self, stream: Stream, number: int) -> bool:
        """Whether operation ``number`` of ``stream`` is done before the next one of this stream begins."""
        return max(self.clock.get(stream, 0), _host.get(stream, 0)) >= number

    def wait_event(self, event: Event) -> None:
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        learn(self.clock, stream.clock)

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        self.record_event().synchronize()


DEFAULT = Stream()


def current_stream(device: object = None) -> Stream:
    """The stream on which this thread's operations run."""
    return getattr(_thread, "stream", DEFAULT)


@contextmanager
def stream(chosen: Stream | None) -> Iterator[None]:
    """Run what this thread does inside on the stream ``chosen``."""
    before = current_stream()
    _thread.stream = chosen or before
    try:
        yield
    finally:
        _thread.stream = before


def synchronize(device: object = None) -> None:
    """Wait until everything issued so far is done."""
    everything: Clock = {}
    for each in list(_streams):
        learn(everything, each.clock)
    _block(everything)
