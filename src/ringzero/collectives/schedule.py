"""A collective as data: rounds of transfers of chunks between ranks.

An algorithm is a short generator of rounds. The same value is run on real ranks (``run``), proved
(``verify``), counted (``bytes_sent``, ``messages_sent``) and drawn (``ringzero.figures.spacetime``).

The buffer of S bytes is cut into ``chunks`` pieces, as equal as whole elements allow. Within a round
every transfer reads what its source held when the round began.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter")


class Transfer(NamedTuple):
    """Rank ``src`` sends ``chunk`` to rank ``dst``, which adds it to its own (``reduce``) or replaces its own."""

    src: int
    dst: int
    chunk: int
    reduce: bool


class Round:
    """Transfers that may all happen at once, stored as columns; iterating gives ``Transfer`` values.

    Arguments broadcast as in NumPy, so one line describes what N ranks do:

    >>> ranks = np.arange(3)
    >>> list(Round(src=ranks, dst=(ranks + 1) % 3, chunk=ranks, reduce=True))[0]
    Transfer(src=0, dst=1, chunk=0, reduce=True)
    """

    __slots__ = ("chunk", "dst", "reduce", "src")

    def __init__(self, src, dst, chunk, reduce):
        columns = np.broadcast_arrays(*(np.atleast_1d(np.asarray(c)) for c in (src, dst, chunk, reduce)))
        self.src, self.dst, self.chunk = (column.astype(np.int32) for column in columns[:3])
        self.reduce = columns[3].astype(bool)

    def __iter__(self) -> Iterator[Transfer]:
        columns = (self.src, self.dst, self.chunk, self.reduce)
        return (Transfer(*row) for row in zip(*(column.tolist() for column in columns), strict=True))

    def __len__(self):
        return len(self.src)

    def __repr__(self):
        sign = "=+"  # copy, reduce
        return f"Round({', '.join(f'{t.src}→{t.dst} {sign[t.reduce]}{t.chunk}' for t in self)})"


@dataclass(frozen=True, eq=False)
class Schedule:
    """``collective`` among ``world_size`` ranks by the algorithm ``name``; ``root`` where the collective has one."""

    collective: str
    name: str
    world_size: int
    chunks: int
    rounds: tuple[Round, ...]
    root: int | None = None

    def __post_init__(self):
        if self.collective not in COLLECTIVES:
            raise ValueError(f"collective is {self.collective!r}; it is one of {', '.join(COLLECTIVES)}")

    def __repr__(self):
        return (
            f"<{self.name} {self.collective}: {self.world_size} ranks, {self.chunks} chunks, {len(self.rounds)} rounds>"
        )

    @cached_property
    def owner(self):
        """``owner[c]``: the rank that chunk c belongs to in a scattered buffer, or the root. Shape ``(chunks,)``."""
        if self.collective in ("broadcast", "reduce", "all_reduce"):
            return np.full(self.chunks, -1 if self.root is None else self.root)
        return np.arange(self.chunks) * self.world_size // self.chunks

    def bytes_sent(self, numel, element_size):
        """Bytes each rank sends for ``numel`` elements of ``element_size`` bytes each. Shape ``(world_size,)``."""
        return self.link_bytes(numel, element_size).sum(axis=1)

    def link_bytes(self, numel, element_size):
        """Bytes from each rank to each other. Shape ``(world_size, world_size)``: ``[src, dst]``."""
        sizes = np.diff(chunk_bounds(numel, self.chunks)) * element_size
        table = np.zeros((self.world_size, self.world_size), dtype=np.int64)
        for round in self.rounds:
            np.add.at(table, (round.src, round.dst), sizes[round.chunk])
        return table

    def messages_sent(self):
        """Messages each rank sends: one for each chunk and round. Shape ``(world_size,)``."""
        counts = np.zeros(self.world_size, dtype=np.int64)
        for round in self.rounds:
            np.add.at(counts, round.src, 1)
        return counts


def chunk_bounds(numel, chunks):
    """Where each chunk of a buffer of ``numel`` elements begins, and the end: ``chunks + 1`` offsets in elements.

    Sizes differ by at most one element, and so do those of any two runs of neighbouring chunks: the larger ones
    are spread out, so no rank of a ring carries more than its share by as much as a chunk.

    >>> chunk_bounds(7, 3).tolist()
    [0, 2, 4, 7]
    """
    return np.arange(chunks + 1) * numel // chunks


def check_world_size(world_size, root=0):
    """Raise ValueError unless ``world_size`` is a whole number from 1 and ``root`` one of its ranks."""
    if isinstance(world_size, bool) or not isinstance(world_size, (int, np.integer)) or world_size < 1:
        raise ValueError(f"world_size is {world_size!r}; give a whole number of ranks, from 1")
    if not 0 <= root < world_size:
        raise ValueError(f"root is {root!r}; with {world_size} ranks it is one of 0 to {world_size - 1}")
