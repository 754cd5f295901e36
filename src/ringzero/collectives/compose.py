"""Larger schedules from smaller ones. See also ``Rounds``: ``a + b`` one after the other, ``backwards``."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from ringzero.collectives.schedule import Round, Rounds, Schedule, Traffic, is_whole, traffic_in_chunks


def side_by_side(rounds: Sequence[Round], ranks: np.ndarray, chunks: np.ndarray) -> Rounds:
    """The same rounds in several groups of ranks at once.

    ``ranks[g, r]`` is the rank that stands for rank r in group g, shape ``(groups, group size)``. ``chunks[g, c]`` are
    the chunks of the whole buffer that together stand for chunk c in group g, shape ``(groups or 1, chunks of a group,
    pieces)``.
    """

    def round(step):
        one = rounds[step]
        src, dst = ranks[:, one.src, None], ranks[:, one.dst, None]
        return Round(src, dst, chunks[:, one.chunk], one.reduce[:, None])

    def alike():
        groups, pieces = len(ranks), chunks.shape[-1]
        for src, dst, share, reduced, times in traffic_in_chunks(rounds):
            share, reduced = (np.tile(pieces * count, groups) for count in (share, reduced))
            yield Traffic(ranks[:, src].ravel(), ranks[:, dst].ravel(), share, reduced, times)

    return Rounds(len(rounds), round, alike)


def segmented(schedule: Schedule, pieces: int) -> Schedule:
    """``schedule``, which works in place, with each chunk cut into ``pieces``, each a round behind the piece before it.

    Raises ValueError for fewer than one piece.
    """
    if pieces < 1:
        raise ValueError(f"pieces is {pieces!r}; cut each chunk into at least 1")
    if pieces == 1:
        return schedule
    rounds = schedule.rounds

    def together(step):
        busy = [(rounds[step - s], s) for s in range(pieces) if 0 <= step - s < len(rounds)]
        columns = ((one.src, one.dst, one.chunk * pieces + s, one.reduce) for one, s in busy)
        return Round(*map(np.concatenate, zip(*columns, strict=True)))

    overlapping = Rounds(len(rounds) + pieces - 1, together)
    return replace(schedule, chunks=schedule.chunks * pieces, rounds=overlapping)


def pipeline(
    src: np.ndarray,
    dst: np.ndarray,
    start: np.ndarray,
    pieces: int,
    *,
    period: int = 1,
    first: int | np.ndarray = 0,
) -> Rounds:
    """Edges ``src[i]`` → ``dst[i]`` that each carry ``pieces`` chunks, one every ``period`` rounds.

    Edge i carries chunk ``first[i]`` in round ``start[i]``, the next chunks after it. Shapes ``(edges,)``. Of two edges
    between the same ranks no more than one is busy in a round. Raises ValueError for fewer than one piece.
    """
    check_pieces(pieces)

    def at(step):
        piece, waiting = np.divmod(step - start, period)
        return piece, (waiting == 0) & (piece >= 0) & (piece < pieces)

    def round(step):
        piece, busy = at(step)
        return Round(src[busy], dst[busy], (first + piece)[busy], reduce=False)

    def alike():
        for busy, equal in groupby((at(step)[1] for step in range(length)), key=bytes):
            busy = np.frombuffer(busy, dtype=bool)
            yield Traffic.of(src[busy], dst[busy], 1, reduce=False, times=len(list(equal)))

    length = int(start.max()) + 1 + period * (pieces - 1) if len(start) else 0
    return Rounds(length, round, alike)


def check_pieces(pieces: int) -> None:
    """Raise ValueError unless a buffer can be cut into so many."""
    if not is_whole(pieces) or pieces < 1:
        raise ValueError(f"chunks is {pieces!r}; cut the buffer into at least 1, a whole number")
