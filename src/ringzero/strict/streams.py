"""Streams and events without a GPU: who knows that what is done.

A stream does one operation after another, and streams go on side by side. Each keeps a *clock*: of every stream, how
many operations are done by the time its own next one begins (a vector clock; Fidge 1988, Mattern 1989). Recording an
event keeps a clock, and waiting for it takes that clock over. Nothing here waits for anything: it only says who may
rely on what. These classes stand in for the empty ones of ``torch.cpu``, so a program written for any device, with
``torch.get_device_module(device)``, has streams under ``strict`` too.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Clock = dict[int, int]  # number of a stream -> how many of its operations are done
PRUNE_AFTER = 64  # new streams, after which the clocks forget those that are gone
_lock = threading.RLock()  # of all clocks: threads share the default stream, and what the program knows
_streams: weakref.WeakSet[Stream] = weakref.WeakSet()
_numbers = itertools.count()
_thread = threading.local()  # .stream: the current stream of this thread
_host: Clock = {}  # what the Python program itself has seen done: all that it issues later comes after it
_blockers: list[Callable[[Clock], None]] = []  # called with a clock, they block until its communication is over


def learn(clock: Clock, other: Clock) -> None:
    with _lock:
        for stream, number in other.items():
            if clock.get(stream, 0) < number:
                clock[stream] = number


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


def _prune():
    """Forget streams that are gone: nobody can ask about them any more."""
    alive = {stream.number for stream in _streams}
    for clock in (_host, *(stream.clock for stream in _streams)):
        for number in clock.keys() - alive:
            del clock[number]


class Event:
    """A place in a stream, as ``torch.cuda.Event``."""

    def __init__(self, *_: object, **__: object):
        self._clock: Clock = {}

    def record(self, stream: Stream | None = None) -> None:
        self._clock = (stream or current_stream()).now()

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
        self.number = next(_numbers)
        self.clock: Clock = {self.number: 0}
        with _lock:
            _streams.add(self)
            if self.number % PRUNE_AFTER == 0:
                _prune()

    def next(self) -> int:
        """Begin an operation: its number in this stream."""
        with _lock:
            learn(self.clock, _host)
            self.clock[self.number] += 1
            return self.clock[self.number]

    def now(self) -> Clock:
        """A copy of the clock."""
        with _lock:
            return dict(self.clock)

    def knows(self, stream: Stream, number: int) -> bool:
        """Whether operation ``number`` of ``stream`` is done before the next one of this stream begins."""
        return max(self.clock.get(stream.number, 0), _host.get(stream.number, 0)) >= number

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
    with _lock:
        for each in _streams:
            learn(everything, each.clock)
    _block(everything)
