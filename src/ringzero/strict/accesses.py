"""Who read and wrote which bytes, on which stream: a use that is not ordered after another one is a race.

As torch's CUDA sanitizer, but by ranges of a storage, so that the buckets of one buffer do not disturb each other.
"""

from __future__ import annotations

import math
import threading
import weakref
from typing import Any, NamedTuple

import numpy as np
import torch

from ringzero.record import sources
from ringzero.strict.streams import DEFAULT, Stream

FORGET_AFTER = 256  # new storages, or as many as are alive if these are more: then those that are gone are forgotten


class StrictError(RuntimeError):
    """The program is wrong where communication works as NCCL's does, even if it gave the right result on gloo."""


class Use(NamedTuple):
    """One use of a tensor's memory: ``what`` did it, at which ``line``; ``pending`` is the communication it is of."""

    extent: Extent
    writes: bool
    stream: Stream
    number: int
    what: str
    line: tuple[str, int]
    pending: Any = None

    def __str__(self) -> str:
        return self.what if self.pending is not None else f"{self.what} ({sources.place(*self.line)})"

    def clashes(self, other: Use) -> bool:
        """Whether both may happen at once and one of them writes what the other uses."""
        if self.pending is other.pending and self.number == other.number and self.stream is other.stream:
            return False  # one and the same operation
        of_one_batch = self.stream is other.stream and self.number == other.number
        at_once = of_one_batch or not self.stream.knows(other.stream, other.number)
        return at_once and (self.writes or other.writes) and self.extent.meets(other.extent)

    def stands_for(self, other: Use) -> bool:
        """Whether a later use need not be compared with the earlier ``other``, because it is compared with this one."""
        return (
            (self.writes or not other.writes)
            and (other.pending is None or other.pending.settled)
            and self.stream.knows(other.stream, other.number)
            and self.extent.covers(other.extent)
        )


class Extent(NamedTuple):
    """Which bytes of its storage a tensor uses, from ``start`` to ``stop`` - 1 at most."""

    start: int
    stop: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Extent:
        size, shape, strides = tensor.element_size(), tuple(tensor.shape), tensor.stride()
        start = int(tensor.storage_offset()) * size
        last = int(sum((n - 1) * step for n, step in zip(shape, strides, strict=True)))
        return cls(start, start + (last + 1) * size if tensor.numel() else start, shape, strides, size)

    def covers(self, other: Extent) -> bool:
        """Whether all bytes of ``other`` are among these. Also False where it would take long to find out."""
        return self == other or (self.is_dense() and self.start <= other.start and other.stop <= self.stop)

    def meets(self, other: Extent) -> bool:
        """Whether the two share a byte. Columns of a matrix do not, though their extents do."""
        if max(self.start, other.start) >= min(self.stop, other.stop):
            return False
        return (self.is_dense() and other.is_dense()) or _share_a_byte(self, other)

    def is_dense(self) -> bool:
        return self.stop - self.start == math.prod(self.shape) * self.itemsize


def _share_a_byte(first, second):
    begin = min(first.start, second.start)
    used = np.zeros((2, max(first.stop, second.stop) - begin), dtype=bool)  # for each of the two, and each byte
    for row, extent in zip(used, (first, second), strict=True):
        strides = tuple(step * extent.itemsize for step in extent.strides)
        for byte in range(extent.itemsize):
            np.lib.stride_tricks.as_strided(row[extent.start - begin + byte :], extent.shape, strides)[...] = True
    return bool((used[0] & used[1]).any())


class Storage(NamedTuple):
    """What is known of a storage.

    ``home``   the stream that gets the memory back when the storage is dropped
    ``waits``  streams that it was recorded on (``record_stream``): the memory is not given back before they are done
    ``uses``   what later uses are compared with: the last of each extent, stream and kind
    """

    reference: torch.multiprocessing.reductions.StorageWeakRef
    home: Stream
    waits: set[Stream]
    uses: dict[tuple, Use]


class Memory:
    """All uses so far, by storage."""

    def __init__(self):
        self._lock = threading.RLock()  # threads share tensors
        self._storages: dict[int, Storage] = {}
        self._abroad: dict[int, Storage] = {}  # those used on another stream than their own
        # Of storages that are gone: their home stream, which may be gone too, and uses that it has not waited for.
        self._left: list[tuple[weakref.ref[Stream], list[Use]]] = []
        self._until_forgotten = FORGET_AFTER

    def _known(self, tensor, home=DEFAULT):
        storage = tensor.untyped_storage()
        known = self._storages.get(storage._cdata)
        if known is None or known.reference.expired():
            self._forget()
            reference = torch.multiprocessing.reductions.StorageWeakRef(storage)
            known = self._storages[storage._cdata] = Storage(reference, home, set(), {})
        return known

    def use(
        self, tensor: torch.Tensor, writes: bool, stream: Stream, number: int, what: str, pending: Any = None
    ) -> list:
        """Note a use. Returns the communication whose results must be there first. Raises StrictError for a race."""
        extent = Extent.of(tensor)
        if extent.start == extent.stop:
            return []
        new = Use(extent, writes, stream, number, what, sources.callers_line(), pending)
        before, over = [], []
        with self._lock:
            known = self._known(tensor)
            uses = known.uses
            for key, other in uses.items():
                if new.clashes(other):
                    raise StrictError(_race(new, other))
                if other.pending not in (None, pending) and not other.pending.settled and (writes or other.writes):
                    before += [other.pending] if extent.meets(other.extent) else []
                if new.stands_for(other):
                    over.append(key)
            for key in over:
                del uses[key]
            uses[extent, stream, writes] = new
            if pending is None and stream is not known.home:
                self._abroad[tensor.untyped_storage()._cdata] = known
        return before

    def made(self, tensor: torch.Tensor, stream: Stream) -> None:
        """An operation on ``stream`` returned ``tensor``: new memory is of that stream, all else of the default one."""
        with self._lock:
            self._known(tensor, stream)

    def record_stream(self, tensor: torch.Tensor, stream: Stream) -> None:
        """The memory will be given back only when ``stream`` has come so far."""
        with self._lock:
            self._known(tensor).waits.add(stream)

    def check_dropped(self, stream: Stream) -> None:
        """An operation on ``stream`` may take memory. Raises StrictError if other streams may still use that memory."""
        if not (self._abroad or self._left):
            return
        with self._lock:
            gone = [k for k, known in self._abroad.items() if known.home is stream and known.reference.expired()]
            dropped = [_used_abroad(self._abroad.pop(key)) for key in gone]
            if self._left:
                dropped += [uses for home, uses in self._left if home() is stream]
                self._left = [left for left in self._left if left[0]() is not stream]
        for use in (use for uses in dropped for use in uses):
            if not stream.knows(use.stream, use.number):
                raise StrictError(
                    f"{use} uses a tensor of another stream, which was dropped before that stream has waited: "
                    "others may get its memory too early. Keep it until then, or call its record_stream"
                )

    def _forget(self):
        self._until_forgotten -= 1
        if self._until_forgotten > 0:
            return
        self._storages = {key: known for key, known in self._storages.items() if not known.reference.expired()}
        for key in [key for key, known in self._abroad.items() if known.reference.expired()]:
            known = self._abroad.pop(key)
            uses = [use for use in _used_abroad(known) if not known.home.knows(use.stream, use.number)]
            self._left += [(weakref.ref(known.home), uses)] if uses else []
        self._left = [left for left in self._left if left[0]() is not None]
        self._until_forgotten = max(FORGET_AFTER, len(self._storages))


def _used_abroad(known):
    """The program's own uses on other streams, which must be over before the memory is given back."""
    streams = {known.home, *known.waits}
    return [use for use in known.uses.values() if use.pending is None and use.stream not in streams]


def _race(new, other):
    does, did = ("writes" if new.writes else "reads"), ("write" if other.writes else "read")
    if other.pending is not None:
        return f"{new} {does} a tensor that {other} may still {did}: first wait() for {other.pending.kind}"
    return (
        f"{new} {does} a tensor that {other}, on another stream, may still {did}: have one stream wait for the other "
        "first (wait_stream, or an event)"
    )
