"""Larger schedules from smaller ones. See also ``Rounds``: ``a + b`` one after the other, ``backwards``."""

import numpy as np

from ringzero.collectives.schedule import Round, Rounds, Traffic


def side_by_side(rounds, ranks, chunks):
    """The same rounds in several groups of ranks at once.

    ``ranks[g, r]`` is who plays rank r in group g; ``chunks[g, c]`` are the chunks of the whole buffer that together
    play chunk c there. Shapes ``(groups, group size)`` and ``(groups or 1, chunks of a group, pieces)``.
    """

    def round(step):
        one = rounds[step]
        src, dst = ranks[:, one.src, None], ranks[:, one.dst, None]
        return Round(src, dst, chunks[:, one.chunk], one.reduce[:, None])

    def alike():
        groups, pieces = len(ranks), chunks.shape[-1]
        for src, dst, share, reduced, times in rounds.traffic():
            share, reduced = (np.tile(pieces * count, groups) for count in (share, reduced))
            yield Traffic(ranks[:, src].ravel(), ranks[:, dst].ravel(), share, reduced, times)

    return Rounds(len(rounds), round, alike)


def pipeline(src, dst, start, pieces, *, period=1, first=0):
    """Edges ``src[i]`` → ``dst[i]`` that each carry ``pieces`` chunks, one every ``period`` rounds.

    Edge i carries chunk ``first[i]`` in round ``start[i]``, the next ones after it. Raises ValueError for no pieces.
    """
    if pieces < 1:
        raise ValueError(f"chunks is {pieces!r}; cut the buffer into at least 1")

    def round(step):
        piece, waiting = np.divmod(step - start, period)
        busy = (waiting == 0) & (piece >= 0) & (piece < pieces)
        return Round(src[busy], dst[busy], (first + piece)[busy], reduce=False)

    return Rounds(int(start.max()) + 1 + period * (pieces - 1) if len(start) else 0, round)
