"""Chunks of a flat vector that several ranks keep, cut anew for another number of ranks from the copies that are left.

With ``copies=2`` chunk c is kept by rank c, its owner, and by rank c + 1; in general by the ``copies`` ranks from c on.

>>> [kept_by(rank, ranks=3, copies=2) for rank in range(3)]
[[0, 2], [1, 0], [2, 1]]

Rank 1 of three is lost. The other two, now ranks 0 and 1, cut the vector into halves:

>>> for piece in pieces(12, copies=2, ranks_before=3, now_at={0: 0, 2: 1}, ranks=2):
...     print(piece)
Piece(source=0, target=0, before=0, now=0, start=0, stop=4)
Piece(source=1, target=0, before=1, now=0, start=4, stop=6)
Piece(source=1, target=0, before=1, now=1, start=6, stop=8)
Piece(source=0, target=0, before=2, now=1, start=8, stop=12)
Piece(source=1, target=1, before=1, now=1, start=6, stop=8)
Piece(source=1, target=1, before=2, now=1, start=8, stop=12)
Piece(source=0, target=1, before=0, now=0, start=0, stop=4)
Piece(source=1, target=1, before=1, now=0, start=4, stop=6)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ringzero.collectives.schedule import chunk_bounds


class Piece(NamedTuple):
    """Elements ``start`` to ``stop`` of the vector, which are of chunk ``before``, go to a rank's chunk ``now``.

    ``source`` and ``target`` are ranks as they are numbered now. They are one rank for what stays where it is.
    """

    source: int
    target: int
    before: int
    now: int
    start: int
    stop: int


class ChunksLost(RuntimeError):  # noqa: N818  (it says what was lost)
    """All ranks that kept a chunk are lost. ``kept_by`` has these ranks, by chunk."""

    def __init__(self, message: str, kept_by: Mapping[int, list] | None = None):
        super().__init__(message)
        self.kept_by = dict(kept_by or {})

    @classmethod
    def of(cls, kept_by: Mapping[int, list], chunks: int) -> "ChunksLost":
        lost = "; ".join(f"chunk {chunk} of {chunks}, kept by {', '.join(map(str, k))}" for chunk, k in kept_by.items())
        return cls(f"nobody is left who kept {lost}", kept_by)


def keepers(chunk: int, ranks: int, copies: int) -> list[int]:
    """The ranks that keep a chunk, its owner first."""
    return [(chunk + step) % ranks for step in range(min(copies, ranks))]


def kept_by(rank: int, ranks: int, copies: int) -> list[int]:
    """The chunks that a rank keeps, its own first."""
    return [(rank - step) % ranks for step in range(min(copies, ranks))]


def pieces(numel: int, copies: int, ranks_before: int, now_at: Mapping[int, int], ranks: int) -> list[Piece]:
    """Where each of ``ranks`` ranks gets what it is to keep of a vector of ``numel`` elements.

    ``now_at`` says of those that were ranks before, and are left, which ranks they are now. A rank sends itself what it
    has; the rest comes from the first of a chunk's keepers that is left. Raises ChunksLost if none is.
    """
    bounds_before, bounds = chunk_bounds(numel, ranks_before).tolist(), chunk_bounds(numel, ranks).tolist()
    keepers_before = [keepers(chunk, ranks_before, copies) for chunk in range(ranks_before)]
    left = [[now_at[keeper] for keeper in some if keeper in now_at] for some in keepers_before]
    empty = [start == stop for start, stop in zip(bounds_before, bounds_before[1:], strict=False)]
    if lost := {chunk: keepers_before[chunk] for chunk in range(ranks_before) if not (left[chunk] or empty[chunk])}:
        raise ChunksLost.of(lost, ranks_before)
    found = []
    for target in range(ranks):
        for now in kept_by(target, ranks, copies):
            for before in range(ranks_before):
                start, stop = max(bounds[now], bounds_before[before]), min(bounds[now + 1], bounds_before[before + 1])
                if start < stop:
                    source = target if target in left[before] else left[before][0]
                    found.append(Piece(source, target, before, now, start, stop))
    return found


def move(pieces: Sequence[Piece], rank: int, mine: Mapping[int, Tensor], begins: Sequence[int], keeps: Sequence[int],
         rows: int, exchange: Callable[[list, list], None]) -> dict[int, Tensor]:  # fmt: skip
    """Send and receive ``pieces`` of matrices of so many ``rows``. Returns the chunks that ``rank`` ``keeps`` now.

    ``mine``    the chunks that the rank has kept, cut as before; chunk c began at column ``begins[c]``
    ``exchange(sends, receives)``  of lists of ``(tensor, peer)``
    """
    sends, receives, arrived = [], [], []
    for source, target, before, now, start, stop in pieces:
        if source == rank:
            piece = mine[before][:, start - begins[before] : stop - begins[before]].contiguous()
        elif target == rank:
            piece = torch.empty(rows, stop - start, device="cpu")
            receives.append((piece, source))
        if target == rank:
            arrived.append((now, piece))
        elif source == rank:
            sends.append((piece, target))
    exchange(sends, receives)
    return {
        chunk: torch.cat([torch.empty(rows, 0, device="cpu"), *(p for now, p in arrived if now == chunk)], dim=1)
        for chunk in keeps
    }
