"""Carry one entry of a queue: all its messages at once, each compared with what the other end says it is.

Before its data each message has a header, and a receiver answers with one, so that a send is over only when its
receive runs: a rendezvous. Headers say what is called and where, so two ranks that call different things both hear of
it, with both lines.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
import torch.distributed as dist

from ringzero.strict.accesses import StrictError
from ringzero.strict.pending import Pending

HEADER_BYTES = 256
LARGEST_TAG = 2**30
HEADER, ANSWER, DATA = range(3)  # gloo's tags; that of data is DATA + its size, so that what differs never meets


class Header(NamedTuple):
    """What one end of a message says: the ``kind`` of operation, how many bytes it sends or expects, its own words."""

    kind: str
    size: int
    says: str
    place: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.place}; {self.size} bytes{self.says})"

    def packed(self) -> torch.Tensor:
        text = (
            "\n".join([self.kind, str(self.size), self.says, self.place])
            .encode()[:HEADER_BYTES]
            .ljust(HEADER_BYTES, b"\0")
        )
        return torch.frombuffer(bytearray(text), dtype=torch.uint8)

    @classmethod
    def of(cls, packed: torch.Tensor) -> Header:
        kind, size, says, place = bytes(packed.tolist()).rstrip(b"\0").decode(errors="replace").split("\n")
        return cls(kind, int(size), says, place)


OTHER_END = {"send": "recv", "recv": "send"}  # of a message; of a collective it is the collective itself


class Expected(NamedTuple):
    """A header to come from ``peer``. ``into`` is for the data that comes with it, None where data only goes."""

    peer: int
    header: torch.Tensor
    work: object
    into: torch.Tensor | None
    mine: Header

    @property
    def size(self) -> int:
        return self.mine.size if self.into is None else self.into.numel()


class Exchange:
    """Messages of ``rank`` over ``gloo``, whose ranks are the communicator's."""

    def __init__(self, gloo: dist.ProcessGroupGloo, rank: int):
        self._gloo, self._rank = gloo, rank
        self._error: Exception | None = None  # the first one: what comes after it fails as its echo

    def carry(self, entry: list[Pending]) -> None:
        """Run the operations of an entry, and end each. Everything is under way before anything is awaited."""
        ends = [self._begin(pending) for pending in entry]
        for pending in entry:
            pending.results, pending.error = self._outcome(ends.pop(0))  # no other name here keeps the tensors
            pending.ended()

    def _outcome(self, end):
        results = []
        try:
            results = end()
        except Exception as error:  # the program hears of it where it waits
            self._error = self._error or error
        return results, self._error

    def _begin(self, pending):
        """Start all messages. Returns what waits for them and gives the results."""
        try:
            return functools.partial(_raise, self._error) if self._error else self._end(*self._start(pending))
        except Exception as error:
            return functools.partial(_raise, error)

    def _end(self, works, expected, results):
        def end():
            for each in expected:
                self._compare(each)
            for work in works:
                work.wait()
            return results()

        return end

    def _start(self, pending):
        traffic, results = pending.plan(pending.inputs)
        sends = {peer: as_bytes(data) for peer, data in traffic.sends.items()}
        receives = {peer: as_bytes(data) for peer, data in traffic.receives.items()}
        works, expected = [], []
        for peer in sorted({*sends, *receives}):
            out, into = sends.get(peer), receives.get(peer)
            mine = Header(pending.kind, (into if out is None else out).numel(), pending.says, pending.place)
            works.append(self._gloo.send([mine.packed()], peer, ANSWER if out is None else HEADER))
            if out is not None and out.numel():
                works.append(self._gloo.send([out], peer, _data_tag(out)))
            if into is not None and into.numel():
                works.append(self._gloo.recv([into], peer, _data_tag(into)))
            header = torch.empty(HEADER_BYTES, dtype=torch.uint8, device="cpu")
            work = self._gloo.recv([header], peer, ANSWER if into is None else HEADER)
            expected.append(Expected(peer, header, work, into, mine))
        return works, expected, results

    def _compare(self, expected):
        """Raise StrictError unless the other end of a message is what it should be."""
        expected.work.wait()
        mine, theirs = expected.mine, Header.of(expected.header)
        if (theirs.kind, theirs.says, theirs.size) != (OTHER_END.get(mine.kind, mine.kind), mine.says, expected.size):
            raise StrictError(
                f"rank {self._rank} called {mine} where rank {expected.peer} of the group called {theirs}: on NCCL "
                "these two meet, whatever their kind or tag, and hang or mix up the data"
            )


def _raise(error):
    raise error


def _data_tag(data):
    return DATA + data.numel() % LARGEST_TAG


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(-1).view(torch.uint8) if tensor.numel() else tensor.new_empty(0, dtype=torch.uint8)
