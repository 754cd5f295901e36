"""One rank's part in a schedule: its messages, and the order in which they are posted and waited for. No torch.

Chunks that go from one rank to another in the same round and lie side by side are one message. Small pieces that lie
apart are packed into one, and what is larger than ``SEGMENT_BYTES`` travels in several. There is no barrier between
rounds: a message waits only for earlier ones that touch the same elements. Which those are is found here, once, so
that running a program is a loop over five kinds of step.

Memory is several buffers, and a ``Range`` names elements of one: ``INPUT`` (the only one where a collective works in
place), ``OUTPUT`` of an all-to-all, ``SCRATCH``.
"""

from itertools import accumulate, groupby, pairwise, zip_longest
from typing import NamedTuple

import numpy as np

from ringzero.collectives.schedule import Schedule, chunk_bounds

SEGMENT_BYTES = 2 * 2**20
PACKED_BYTES = 64 * 2**10  # pieces that lie apart are copied into one message up to this size
LANDINGS = 4  # places in scratch memory in use at once; the fifth arrival waits until one is put where it belongs

INPUT, OUTPUT, SCRATCH = range(3)


class Range(NamedTuple):
    """Elements ``start`` to ``stop`` - 1 of a buffer."""

    buffer: int
    start: int
    stop: int

    def meets(self, other: "Range") -> bool:
        """Whether the two share an element."""
        return self.buffer == other.buffer and self.start < other.stop and other.start < self.stop


class Receive(NamedTuple):
    """Post a receive from rank ``peer`` into a range."""

    peer: int
    into: Range


class Send(NamedTuple):
    """Post a send to rank ``peer`` from a range."""

    peer: int
    source: Range


class Wait(NamedTuple):
    """Wait for a posted message; ``request`` counts Receives and Sends from 0."""

    request: int


class Combine(NamedTuple):
    """Reduce what has arrived into a range; ``kept_first``: the range is the first operand, else the second."""

    into: Range
    arrived: Range
    kept_first: bool


class Copy(NamedTuple):
    """Copy one range into another."""

    into: Range
    source: Range


class Program(NamedTuple):
    """What a rank does. ``scratch`` is how many elements of scratch memory it needs.

    ``sends_to`` and ``receives_from`` are its links: ``{peer: number of elements}``. A header tells the peer that
    number, so that both ends can compare what they expect.
    """

    steps: list[Receive | Send | Wait | Combine | Copy]
    scratch: int
    sends_to: dict[int, int]
    receives_from: dict[int, int]


def program(
    schedule: Schedule,
    rank: int,
    sizes: int | tuple[tuple[int, ...], tuple[int, ...]],
    element_size: int,
    by_round: bool = False,
) -> Program:
    """The ``Program`` of ``rank``.

    ``sizes`` is the number of elements in the buffer; in an all-to-all it may be ``(outgoing, incoming)``, how many go
    to each rank and come from each. ``element_size`` is in bytes. ``by_round``: the messages of a round are posted
    together, unsegmented, and all waited for before the next round begins.
    """
    place = (_Exchanged if schedule.collective == "all_to_all" else _InPlace)(schedule, rank, sizes)
    packed, largest = PACKED_BYTES // element_size, None if by_round else SEGMENT_BYTES // element_size
    rounds: list[list] = []
    links: set[tuple[int, int]] = set()
    for round in schedule.rounds:
        mine = (round.src == rank) | (round.dst == rank)
        columns = (round.src, round.dst, round.reduce, round.chunk)
        transfers = sorted(zip(*(column[mine].tolist() for column in columns), strict=True))
        links.update(transfer[:2] for transfer in transfers)
        rounds.append(_messages(transfers, rank, place.ranges, packed, largest))
    steps, scratch = (_by_round if by_round else _by_need)(rounds, rank, place)
    sends_to = {dst: place.outgoing[dst] for src, dst in sorted(links) if src == rank}
    receives_from = {src: place.incoming[src] for src, dst in sorted(links) if dst == rank}
    return Program(steps, scratch, sends_to, receives_from)


# ---- where chunks lie


class _InPlace:
    """Chunks lie in one buffer, in order."""

    kept = 0  # elements of scratch memory that hold chunks
    own = ()  # what is copied within the rank

    def __init__(self, schedule, rank, numel):
        self._bounds = chunk_bounds(numel, schedule.chunks).tolist()
        self.outgoing = self.incoming = [numel] * schedule.world_size

    def ranges(self, chunks):
        """Where these chunks, sorted, lie; neighbours are one range."""
        found = []
        for chunk in chunks:
            start, stop = self._bounds[chunk], self._bounds[chunk + 1]
            if found and found[-1].stop == start:
                start = found.pop().start
            found.append(Range(INPUT, start, stop))
        return found


class _Exchanged:
    """Chunk ``src * N + dst`` lies in the input of src, in the output of dst, in the scratch memory of all others."""

    def __init__(self, schedule, rank, sizes):
        n = self._n = schedule.world_size
        self._rank = rank
        if isinstance(sizes, int):
            self.outgoing = self.incoming = [sizes] * n
            self._sizes = np.diff(chunk_bounds(sizes, n)).tolist()
            sizes = self._sizes, [self._sizes[rank]] * n
        else:
            self.outgoing, self.incoming = sizes
        self._inputs, self._outputs = (list(pairwise(accumulate(part, initial=0))) for part in sizes)
        self.own = [Copy(Range(OUTPUT, *self._outputs[rank]), Range(INPUT, *self._inputs[rank]))]
        self.kept, self._passed_on = 0, {}

    def ranges(self, chunks):
        return [self._range(chunk, *divmod(chunk, self._n)) for chunk in chunks]

    def _range(self, chunk, src, dst):
        if src == self._rank:
            return Range(INPUT, *self._inputs[dst])
        if dst == self._rank:
            return Range(OUTPUT, *self._outputs[src])
        if chunk not in self._passed_on:
            start, self.kept = self.kept, self.kept + self._sizes[dst]
            self._passed_on[chunk] = Range(SCRATCH, start, self.kept)
        return self._passed_on[chunk]


# ---- what travels together


class _Message(NamedTuple):
    """To or from ``peer``: what is in ``ranges``, one after the other.

    ``aside``: the message must land in scratch memory first, because it has to be reduced or unpacked, or because the
    place it belongs to is still being sent.
    """

    peer: int
    ranges: tuple[Range, ...]
    reduce: bool
    aside: bool = False

    @property
    def size(self):
        return sum(stop - start for _, start, stop in self.ranges)

    def meets(self, other):
        return any(a.meets(b) for a in self.ranges for b in other.ranges)


def _messages(transfers, rank, ranges, packed, largest):
    """One round as a list of ``(receives, sends)``: first the first message of every link, then the second, ..."""
    links = []
    for (src, dst, reduce), chunks in groupby(transfers, key=lambda transfer: transfer[:3]):
        peer = dst if src == rank else src
        cut = _cut(ranges([chunk for *_, chunk in chunks]), packed, largest)
        links.append([(src == rank, _Message(peer, part, reduce)) for part in cut])
    sent = [message for link in links for sends, message in link if sends]
    steps = []
    for step in zip_longest(*links, fillvalue=(None, None)):
        receives = [message for sends, message in step if sends is False]
        aside = [m.reduce or len(m.ranges) > 1 or any(m.meets(other) for other in sent) for m in receives]
        receives = [message._replace(aside=yes) for message, yes in zip(receives, aside, strict=True)]
        steps.append((receives, [message for sends, message in step if sends]))
    return steps


def _cut(ranges, packed, largest):
    """Yield the ranges of each message, the same at both ends: small ranges are packed, large ones cut in segments."""
    together, size = [], 0
    for buffer, start, stop in ranges:
        length = stop - start
        if length > packed:
            bounds = start + chunk_bounds(length, -(-length // largest) if largest else 1)
            yield from ((Range(buffer, *inner),) for inner in pairwise(bounds.tolist()))
        elif length:
            if size + length > packed:
                yield tuple(together)
                together, size = [], 0
            together.append(Range(buffer, start, stop))
            size += length
    if together:
        yield tuple(together)


def _pack(message, packed):
    return [Copy(part, source) for part, source in _parts(message, packed)]


def _put(message, landed, rank):
    """The steps that reduce or copy into place what has landed in scratch memory."""
    if not message.reduce:
        return [Copy(into, part) for part, into in _parts(message, landed)]
    kept_first = rank < message.peer  # both ends of an exchange then combine the operands in the same order
    return [Combine(into, part, kept_first) for part, into in _parts(message, landed)]


def _parts(message, place):
    """``(part of place, range)`` for each range of ``message``."""
    start = place.start
    for r in message.ranges:
        yield Range(place.buffer, start, start := start + r.stop - r.start), r


# ---- in what order


def _by_round(rounds, rank, place):
    """``(steps, elements of scratch memory)`` where a round begins when the one before is over."""
    steps, posted, most = [*place.own], 0, place.kept
    for round in rounds:
        posts, after, top = [], [], place.kept
        for receives, sends in round:
            for message in receives:
                into = message.ranges[0]
                if message.aside:
                    into = Range(SCRATCH, top, top := top + message.size)
                    after += _put(message, into, rank)
                posts.append(Receive(message.peer, into))
            for message in sends:
                source = message.ranges[0]
                if len(message.ranges) > 1:
                    source = Range(SCRATCH, top, top := top + message.size)
                    steps += _pack(message, source)
                posts.append(Send(message.peer, source))
        steps += [*posts, *map(Wait, range(posted, posted + len(posts))), *after]
        posted, most = posted + len(posts), max(most, top)
    return steps, most


def _by_need(rounds, rank, place):
    """``(steps, elements of scratch memory)`` where each message waits for what it needs, and for nothing else."""
    order = _Order(rank, place.kept, max((m.size for r in rounds for ms, _ in r for m in ms if m.aside), default=0))
    for round in rounds:
        order.begin_round(round)
        for receives, sends in round:
            # Receives first: then the data has somewhere to go, and gloo sends it without asking again. But not more
            # than there are places to land: a receive that has to wait for a place would hold up what others wait for.
            for message in receives[:LANDINGS]:
                order.receive(message)
            for message in sends:
                order.send(message)
            for message in receives[LANDINGS:]:
                order.receive(message, crowded=True)
    order.steps += place.own
    order.end()
    return order.steps, order.scratch


class _Order:
    """The steps so far, and the messages that may be under way after them. Requests are numbered as they are posted."""

    def __init__(self, rank, kept, landing_size):
        self.steps, self.scratch = [], kept
        self._rank, self._landing_size = rank, landing_size
        self._posted, self._earlier = 0, 0  # requests, and those of earlier rounds
        self._unsent = []  # messages of this round
        self._arriving, self._leaving = {}, {}  # request -> message, oldest first
        self._landing, self._free = {}, []  # request -> its place in scratch memory; places that nothing uses

    def begin_round(self, round):
        self._earlier = self._posted
        self._unsent = [message for _, sends in round for message in sends]

    def receive(self, message, crowded=False):
        if message.aside:
            place = self._land(crowded)
            self._landing[self._posted] = place
            into = place._replace(stop=place.start + message.size)
        else:
            [into] = message.ranges
            self._settle_touching(message, self._posted)
            self._await_sends(message)
        self._arriving[self._posted] = message
        self._post(Receive(message.peer, into))

    def send(self, message):
        """Arrivals of earlier rounds are part of what is sent; arrivals of this round are not."""
        self._unsent.remove(message)
        self._settle_touching(message, self._earlier)
        if len(message.ranges) > 1:
            packed = self._new(message.size)
            self.steps += _pack(message, packed)
            message = message._replace(ranges=(packed,))
        self._leaving[self._posted] = message
        self._post(Send(message.peer, message.ranges[0]))

    def end(self):
        while self._arriving:
            self._settle(next(iter(self._arriving)))
        self.steps += map(Wait, self._leaving)

    def _post(self, step):
        self.steps.append(step)
        self._posted += 1

    def _land(self, crowded):
        """A place in scratch memory.

        If all are in use, the oldest arrival is put into place to make room, unless the elements that it changes have
        yet to be sent in this same round. In a ``crowded`` round, which sends to more ranks than there are places, they
        must also have left: their receivers may be waiting for room as this rank is.
        """
        if not self._free and len(self._landing) >= LANDINGS:
            oldest = next(iter(self._landing))
            kept = [*self._unsent]
            if crowded:
                kept += [m for request, m in self._leaving.items() if request >= self._earlier]
            if oldest < self._earlier or not any(m.meets(self._arriving[oldest]) for m in kept):
                self._settle(oldest)
        return self._free.pop() if self._free else self._new(self._landing_size)

    def _new(self, size):
        start, self.scratch = self.scratch, self.scratch + size
        return Range(SCRATCH, start, self.scratch)

    def _settle(self, request):
        """Wait for an arrival and put it into place, after earlier arrivals that touch the same elements."""
        message = self._arriving.pop(request)
        self._settle_touching(message, request)
        self.steps.append(Wait(request))
        if request in self._landing:
            place = self._landing.pop(request)
            self._await_sends(message)
            self.steps += _put(message, place, self._rank)
            self._free.append(place)

    def _settle_touching(self, message, before):
        for request in [r for r, m in self._arriving.items() if r < before and m.meets(message)]:
            if request in self._arriving:  # else settling an older arrival has settled this one
                self._settle(request)

    def _await_sends(self, message):
        for request in [r for r, m in self._leaving.items() if m.meets(message)]:
            del self._leaving[request]
            self.steps.append(Wait(request))
