"""What travels together: the messages that one rank sends and receives in a round. No torch.

Chunks that go from one rank to another in the same round and lie side by side are one message. Small pieces that lie
apart are packed into one message, and what is larger than ``SEGMENT_BYTES`` travels in several.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, pairwise, zip_longest
from typing import NamedTuple

from ringzero.collectives.places import Range
from ringzero.collectives.schedule import Transfer, chunk_bounds

SEGMENT_BYTES = 2 * 2**20
PACKED_BYTES = 64 * 2**10  # pieces that lie apart are copied into one message up to this size


class Message(NamedTuple):
    """To or from ``peer``: what is in ``ranges``, one after the other.

    ``aside``: the message must land in scratch memory first, because it has to be reduced or unpacked, or because the
    place it belongs to is still being sent.
    """

    peer: int
    ranges: tuple[Range, ...]
    reduce: bool
    aside: bool = False

    @property
    def size(self) -> int:
        return sum(stop - start for _, start, stop in self.ranges)

    def meets(self, other: "Message") -> bool:
        """Whether the two touch a common element."""
        return any(a.meets(b) for a in self.ranges for b in other.ranges)

    def parts(self, place: Range) -> Iterator[tuple[Range, Range]]:
        """``(part of place, range)`` for each of ``ranges``, if the message lies in ``place`` in one piece."""
        start = place.start
        for its in self.ranges:
            yield Range(place.buffer, start, start := start + its.stop - its.start), its


class Together(NamedTuple):
    """Messages of a round that are posted together."""

    receives: list[Message]
    sends: list[Message]


def messages(
    transfers: Iterable[Transfer],
    rank: int,
    ranges: Callable[[list[int]], list[Range]],
    element_size: int,
    in_segments: bool,
) -> list[Together]:
    """One round of ``rank``: the first message of every link together, then the second of every link, and so on.

    ``transfers`` are those of the rank. ``ranges(chunks)`` says where sorted chunks lie. Without ``in_segments`` large
    messages stay whole.
    """
    links = []
    for (src, dst, reduce), chunks in groupby(sorted(transfers, key=_by_link), key=lambda each: _by_link(each)[:3]):
        peer = dst if src == rank else src
        pieces = _cut(ranges([each.chunk for each in chunks]), element_size, in_segments)
        links.append([(src == rank, Message(peer, piece, reduce)) for piece in pieces])
    sent = [message for link in links for sends, message in link if sends]
    found = []
    for step in zip_longest(*links, fillvalue=(None, None)):
        receives = [message for sends, message in step if sends is False]
        aside = [m.reduce or len(m.ranges) > 1 or any(m.meets(other) for other in sent) for m in receives]
        receives = [message._replace(aside=yes) for message, yes in zip(receives, aside, strict=True)]
        found.append(Together(receives, [message for sends, message in step if sends]))
    return found


def _by_link(transfer):
    return transfer.src, transfer.dst, transfer.reduce, transfer.chunk


def _cut(ranges, element_size, in_segments):
    """Yield the ranges of each message, the same at both ends: small ranges are packed, large ones cut in segments."""
    packed, segment = PACKED_BYTES // element_size, SEGMENT_BYTES // element_size
    together, size = [], 0
    for buffer, start, stop in ranges:
        length = stop - start
        if length > packed:
            bounds = start + chunk_bounds(length, -(-length // segment) if in_segments else 1)
            yield from ((Range(buffer, *inner),) for inner in pairwise(bounds.tolist()))
        elif length:
            if size + length > packed:
                yield tuple(together)
                together, size = [], 0
            together.append(Range(buffer, start, stop))
            size += length
    if together:
        yield tuple(together)
