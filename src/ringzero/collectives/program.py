"""One rank's part in a schedule: the order in which its messages are posted and waited for. No torch.

There is no barrier between rounds: a message waits only for earlier ones that touch the same elements. Which those are
is found here, once, so that running a program is a loop over five kinds of step.
"""

from typing import NamedTuple

from ringzero.collectives.messages import Message, Together, messages
from ringzero.collectives.places import SCRATCH, Exchanged, InPlace, Range, Sizes
from ringzero.collectives.schedule import Schedule

LANDINGS = 4  # places in scratch memory in use at once; the fifth arrival waits until one is put where it belongs


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


Step = Receive | Send | Wait | Combine | Copy


class Program(NamedTuple):
    """What a rank does. ``scratch`` is how many elements of scratch memory it needs.

    ``sends_to`` and ``receives_from`` are the ranks at the other ends of its messages, empty ones too.
    """

    steps: list[Step]
    scratch: int
    sends_to: list[int]
    receives_from: list[int]


def program(schedule: Schedule, rank: int, sizes: Sizes, element_size: int, by_round: bool = False) -> Program:
    """The ``Program`` of ``rank``.

    ``sizes`` is the number of elements in the buffer; in an all-to-all it may be ``(outgoing, incoming)``, how many go
    to each rank and come from each. ``element_size`` is in bytes. ``by_round``: the messages of a round are posted
    together, unsegmented, and all waited for before the next round begins.
    """
    place = Exchanged(schedule, rank, sizes) if schedule.collective == "all_to_all" else InPlace(schedule, sizes)
    rounds, sends_to, receives_from = [], set(), set()
    for round in schedule.rounds:
        mine = round.of(rank)
        sends_to.update(mine.dst[mine.src == rank].tolist())
        receives_from.update(mine.src[mine.dst == rank].tolist())
        rounds.append(messages(mine, rank, place.ranges, element_size, in_segments=not by_round))
    order = _Order(rank, place.scratch, rounds, by_round)
    for together in rounds:
        order.play(together)
    order.steps += [Copy(*kept) for kept in place.kept]
    order.end()
    return Program(order.steps, order.scratch, sorted(sends_to), sorted(receives_from))


class _Order:
    """The steps so far, and the messages that may be under way after them. Requests are numbered as they are posted."""

    def __init__(self, rank: int, scratch: int, rounds: list[list[Together]], by_round: bool):
        self.steps: list[Step] = []
        self.scratch = scratch
        self._rank, self._by_round = rank, by_round
        landing = (m.size for round in rounds for together in round for m in together.receives if m.aside)
        self._landing_size = max(landing, default=0)
        self._posted, self._earlier = 0, 0  # requests, and those of earlier rounds
        self._unsent: list[Message] = []  # messages of this round
        self._arriving: dict[int, Message] = {}  # by request, oldest first
        self._leaving: dict[int, Message] = {}
        self._landing: dict[int, Range] = {}  # request -> its place in scratch memory
        self._free: list[Range] = []  # places that nothing uses

    def play(self, round: list[Together]) -> None:
        """Post the messages of a round, each as soon as what it needs is there."""
        self._earlier = self._posted
        self._unsent = [message for together in round for message in together.sends]
        for receives, sends in round:
            # Receives first: then the data has somewhere to go, and gloo sends it without asking again. But not more
            # than there are places to land: a receive that has to wait for a place would hold up what others wait for.
            at_once = len(receives) if self._by_round else LANDINGS
            for message in receives[:at_once]:
                self._receive(message)
            for message in sends:
                self._send(message)
            for message in receives[at_once:]:
                self._receive(message, crowded=True)
        if self._by_round:
            self.end()

    def end(self) -> None:
        """Wait for all that is under way."""
        while self._arriving:
            self._settle(next(iter(self._arriving)))
        self.steps += map(Wait, self._leaving)
        self._leaving.clear()

    def _receive(self, message, crowded=False):
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

    def _send(self, message):
        """Arrivals of earlier rounds are part of what is sent; arrivals of this round are not."""
        self._unsent.remove(message)
        self._settle_touching(message, self._earlier)
        if len(message.ranges) > 1:
            packed = self._new(message.size)
            self.steps += [Copy(part, its) for part, its in message.parts(packed)]
            message = message._replace(ranges=(packed,))
        self._leaving[self._posted] = message
        self._post(Send(message.peer, message.ranges[0]))

    def _post(self, step):
        self.steps.append(step)
        self._posted += 1

    def _land(self, crowded):
        """A place in scratch memory.

        If all are in use, the oldest arrival is put into place to make room, unless the elements that it changes have
        yet to be sent in this same round. In a ``crowded`` round, which receives from more ranks than there are places,
        they must also have left. Otherwise two crowded ranks could each wait for the other's landing place.
        """
        if not self._free and len(self._landing) >= LANDINGS and not self._by_round:
            oldest = next(iter(self._landing))
            needed = [*self._unsent]
            if crowded:
                needed += [m for request, m in self._leaving.items() if request >= self._earlier]
            if oldest < self._earlier or not any(m.meets(self._arriving[oldest]) for m in needed):
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
            self.steps += self._put(message, place)
            self._free.append(place)

    def _put(self, message, landed):
        """The steps that reduce or copy into place what has landed in scratch memory."""
        if not message.reduce:
            return [Copy(into, part) for part, into in message.parts(landed)]
        kept_first = self._rank < message.peer  # both ends of an exchange then combine the operands in the same order
        return [Combine(into, part, kept_first) for part, into in message.parts(landed)]

    def _settle_touching(self, message, before):
        for request in [r for r, m in self._arriving.items() if r < before and m.meets(message)]:
            if request in self._arriving:  # else settling an older arrival has settled this one
                self._settle(request)

    def _await_sends(self, message):
        for request in [r for r, m in self._leaving.items() if m.meets(message)]:
            del self._leaving[request]
            self.steps.append(Wait(request))
