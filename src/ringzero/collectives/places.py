"""Where a rank keeps the chunks of a schedule. No torch.

A rank has several buffers: ``INPUT`` (the only one where a collective works in place), ``OUTPUT`` of an all-to-all, and
``SCRATCH``. A ``Range`` names elements of one of them.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from ringzero.collectives.schedule import Schedule, chunk_bounds

INPUT, OUTPUT, SCRATCH = range(3)

Sizes = int | tuple[tuple[int, ...], tuple[int, ...]]


class Range(NamedTuple):
    """Elements ``start`` to ``stop`` - 1 of a buffer."""

    buffer: int
    start: int
    stop: int

    def meets(self, other: "Range") -> bool:
        """Whether the two share an element."""
        return self.buffer == other.buffer and self.start < other.stop and other.start < self.stop


class InPlace:
    """Chunks lie in one buffer, in order. ``sizes`` is its number of elements."""

    scratch = 0  # elements of scratch memory that hold chunks
    kept: Sequence[tuple[Range, Range]] = ()  # what stays on this rank: (where it goes, where it is)

    def __init__(self, schedule: Schedule, sizes: Sizes):
        assert isinstance(sizes, int)
        self._bounds = chunk_bounds(sizes, schedule.chunks).tolist()

    def ranges(self, chunks: Iterable[int]) -> list[Range]:
        """Where these chunks, sorted, lie; neighbours are one range."""
        found: list[Range] = []
        for chunk in chunks:
            start, stop = self._bounds[chunk], self._bounds[chunk + 1]
            if found and found[-1].stop == start:
                start = found.pop().start
            found.append(Range(INPUT, start, stop))
        return found


class Exchanged:
    """Chunk ``src * N + dst`` lies in the input of src, in the output of dst, in the scratch memory of all others.

    ``sizes`` as in ``program.program``.
    """

    def __init__(self, schedule: Schedule, rank: int, sizes: Sizes):
        self._n, self._rank = schedule.world_size, rank
        if isinstance(sizes, int):
            self._sizes: list[int] = np.diff(chunk_bounds(sizes, self._n)).tolist()
            sizes = tuple(self._sizes), (self._sizes[rank],) * self._n
        self._inputs, self._outputs = (list(pairwise(accumulate(part, initial=0))) for part in sizes)
        self.kept = [(Range(OUTPUT, *self._outputs[rank]), Range(INPUT, *self._inputs[rank]))]
        self.scratch = 0
        self._passed_on: dict[int, Range] = {}

    def ranges(self, chunks: Iterable[int]) -> list[Range]:
        """Where each of these chunks lies."""
        return [self._range(chunk, *divmod(chunk, self._n)) for chunk in chunks]

    def _range(self, chunk, src, dst):
        if src == self._rank:
            return Range(INPUT, *self._inputs[dst])
        if dst == self._rank:
            return Range(OUTPUT, *self._outputs[src])
        if chunk not in self._passed_on:
            start, self.scratch = self.scratch, self.scratch + self._sizes[dst]
            self._passed_on[chunk] = Range(SCRATCH, start, self.scratch)
        return self._passed_on[chunk]
