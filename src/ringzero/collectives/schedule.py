"""A collective as data: rounds of transfers of chunks between ranks.

An algorithm is a short function from a step to its round. The same value is run on real ranks (``run``), proved
(``proof.verify``), counted (``bytes_sent``, ``messages_sent``, ``traffic``) and drawn (``spacetime`` of the
course).

The buffer of S bytes is cut into ``chunks`` pieces, as equal as whole elements allow. Within a round
every transfer reads what its source held when the round began.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

COLLECTIVES = (
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter", "all_to_all", "barrier",
)  # fmt: skip


class Transfer(NamedTuple):
    """Rank ``src`` sends ``chunk`` to rank ``dst``, which adds it to its own (``reduce``) or replaces its own."""

    src: int
    dst: int
    chunk: int
    reduce: bool


class Round:
    """Transfers that may all happen at once, stored as columns; iterating gives ``Transfer`` values.

    The columns have shape ``(transfers,)``. Arguments broadcast as in NumPy, so one line describes what N ranks do:

    >>> ranks = np.arange(3)
    >>> list(Round(src=ranks, dst=(ranks + 1) % 3, chunk=ranks, reduce=True))[0]
    Transfer(src=0, dst=1, chunk=0, reduce=True)
    """

    __slots__ = ("chunk", "dst", "reduce", "src")

    def __init__(self, src: ArrayLike, dst: ArrayLike, chunk: ArrayLike, reduce: ArrayLike):
        columns = np.broadcast_arrays(*(np.atleast_1d(np.asarray(c)) for c in (src, dst, chunk, reduce)))
        self.src, self.dst, self.chunk = (column.ravel().astype(np.intp, copy=False) for column in columns[:3])
        self.reduce = columns[3].ravel().astype(bool, copy=False)

    def __iter__(self) -> Iterator[Transfer]:
        columns = (self.src, self.dst, self.chunk, self.reduce)
        return (Transfer(*row) for row in zip(*(column.tolist() for column in columns), strict=True))

    def __len__(self):
        return len(self.src)

    def of(self, rank: int) -> "Round":
        """The transfers that ``rank`` sends or receives."""
        mine = (self.src == rank) | (self.dst == rank)
        return Round(self.src[mine], self.dst[mine], self.chunk[mine], self.reduce[mine])

    def __repr__(self):
        sign = "=+"  # copy, reduce
        return f"Round({', '.join(f'{t.src}→{t.dst} {sign[t.reduce]}{t.chunk}' for t in self)})"


class Traffic(NamedTuple):
    """The messages of ``times`` consecutive rounds that look alike: ``src[i]`` sends ``share[i]`` to ``dst[i]``.

    ``share[i]`` is a fraction of the buffer: all chunks that go from ``src[i]`` to ``dst[i]`` in one round. The
    fraction ``reduced[i]`` of the buffer is reduced on arrival. Shapes ``(messages,)``; shares are float64.
    """

    src: np.ndarray
    dst: np.ndarray
    share: np.ndarray
    reduced: np.ndarray
    times: int

    @classmethod
    def of(cls, src: ArrayLike, dst: ArrayLike, share: ArrayLike, reduce: bool, times: int = 1) -> "Traffic":
        """From a number or an array for each column; with ``reduce`` all that arrives is reduced, else nothing."""
        src, dst, share = np.broadcast_arrays(src, dst, np.asarray(share, dtype=float))
        return cls(src, dst, share, share * bool(reduce), times)


class Rounds(Sequence):
    """``length`` rounds; ``make(step)`` makes one when it is looked at, so 65,536 ranks cost nothing until then.

    ``a + b`` plays b after a. ``traffic_in_chunks`` makes every round and counts, unless ``alike()`` states the
    traffic: for rounds that repeat, and for those of very many transfers.
    """

    def __init__(
        self,
        length: int,
        make: Callable[[int], Round],
        alike: Callable[[], Iterable[Traffic]] | None = None,
    ):
        self._length, self._make, self.alike = length, make, alike

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, step):
        if isinstance(step, slice):
            steps = range(self._length)[step]
            return Rounds(len(steps), lambda i: self._make(steps[i]))
        return self._make(range(self._length)[step])

    def __add__(self, later: "Rounds") -> "Rounds":
        n = self._length
        return Rounds(
            n + len(later),
            lambda step: self[step] if step < n else later[step - n],
            lambda: chain(traffic_in_chunks(self), traffic_in_chunks(later)),
        )

    def backwards(self, reduce: bool) -> "Rounds":
        """From the last to the first, every transfer from its receiver to its sender, adding if ``reduce``.

        Rounds that spread one rank's chunk now collect the chunks of all: a broadcast becomes a reduction and an
        all-gather a reduce-scatter (``reduce=True``), a scatter a gather (``reduce=False``).
        """

        def turned(step):
            round = self[self._length - 1 - step]
            return Round(src=round.dst, dst=round.src, chunk=round.chunk, reduce=reduce)

        def alike():
            traffic = reversed(tuple(traffic_in_chunks(self)))
            return (Traffic.of(t.dst, t.src, t.share, reduce, t.times) for t in traffic)

        return Rounds(self._length, turned, self.alike and alike)


def traffic_in_chunks(rounds: Sequence[Round]) -> Iterator[Traffic]:
    """``Traffic`` of any sequence of rounds; its shares count chunks.

    Chunks that travel together are one message, and consecutive rounds with the same messages one ``Traffic``.
    """
    if isinstance(rounds, Rounds) and rounds.alike:
        return (traffic for traffic in rounds.alike() if traffic.times > 0)
    return _made_and_counted(rounds)


def _made_and_counted(rounds):
    last, times = None, 0
    for round in rounds:
        n = 1 + max(round.src.max(initial=0), round.dst.max(initial=0))
        links, which = np.unique(round.src * n + round.dst, return_inverse=True)
        reduced = np.bincount(which, weights=round.reduce, minlength=len(links))
        now = (links // n, links % n, np.bincount(which, minlength=len(links)).astype(float), reduced)
        if last is not None and all(map(np.array_equal, now, last)):
            times += 1
            continue
        if last is not None:
            yield Traffic(*last, times)
        last, times = now, 1
    if last is not None:
        yield Traffic(*last, times)


@dataclass(frozen=True, eq=False)
class Schedule:
    """``collective`` among ``world_size`` ranks by the algorithm ``name``; ``root`` where the collective has one.

    ``rounds`` is a ``Rounds`` or any sequence of ``Round``. Chunk c of N·k in a scattered buffer belongs to rank
    c // k. In an all-to-all of N·N chunks, chunk ``src * N + dst`` goes from rank ``src`` to rank ``dst``; every rank
    brings N of them. A barrier has one chunk, and it is empty. Raises ValueError for an unknown collective, and for
    another number of chunks than an all-to-all or a barrier has.
    """

    collective: str
    name: str
    world_size: int
    chunks: int
    rounds: Sequence[Round]
    root: int | None = None

    def __post_init__(self):
        if self.collective not in COLLECTIVES:
            raise ValueError(f"collective is {self.collective!r}; it is one of {', '.join(COLLECTIVES)}")
        chunks = {"all_to_all": self.world_size**2, "barrier": 1}.get(self.collective, self.chunks)
        if self.chunks != chunks:
            raise ValueError(f"chunks is {self.chunks!r}; {self.collective} of {self.world_size} ranks has {chunks}")

    def __repr__(self):
        return (
            f"<{self.name} {self.collective}: {self.world_size} ranks, {self.chunks} chunks, {len(self.rounds)} rounds>"
        )

    @cached_property
    def owner(self) -> np.ndarray:
        """``owner[c]``: the rank that chunk c belongs to (at the end, in an all-to-all), or the root.

        Shape ``(chunks,)``; -1 where a chunk belongs to no single rank.
        """
        if self.collective in ("broadcast", "reduce", "all_reduce", "barrier"):
            return np.full(self.chunks, -1 if self.root is None else self.root)
        if self.collective == "all_to_all":
            return np.arange(self.chunks) % self.world_size
        return np.arange(self.chunks) * self.world_size // self.chunks

    @property
    def pieces(self) -> float:
        """How many chunks make up the buffer that a rank brings: N in an all-to-all, else all of them.

        Infinitely many for a barrier, so that a chunk is no part of any buffer.
        """
        return {"all_to_all": self.world_size, "barrier": np.inf}.get(self.collective, self.chunks)

    def traffic(self) -> Iterator[Traffic]:
        """Who sends what part of the buffer to whom, rounds in order, if all chunks are of one size."""
        for src, dst, chunks, reduced, times in traffic_in_chunks(self.rounds):
            yield Traffic(src, dst, chunks / self.pieces, reduced / self.pieces, times)

    def bytes_sent(self, numel: int, element_size: int) -> np.ndarray:
        """Bytes each rank sends for ``numel`` elements of ``element_size`` bytes each. Shape ``(world_size,)``."""
        sizes, sent = self._sizes(numel, element_size), np.zeros(self.world_size, dtype=np.int64)
        for round in self.rounds:
            np.add.at(sent, round.src, sizes[round.chunk])
        return sent

    def link_bytes(self, numel: int, element_size: int) -> np.ndarray:
        """Bytes that each rank sends to each other, for a buffer as in ``bytes_sent``.

        Shape ``(world_size, world_size)``: ``[src, dst]``.
        """
        sizes = self._sizes(numel, element_size)
        table = np.zeros((self.world_size, self.world_size), dtype=np.int64)
        for round in self.rounds:
            np.add.at(table, (round.src, round.dst), sizes[round.chunk])
        return table

    def _sizes(self, numel, element_size):
        """Bytes of each chunk. Shape ``(chunks,)``."""
        if self.collective == "barrier":
            return np.zeros(self.chunks, dtype=np.int64)
        sizes = np.diff(chunk_bounds(numel, self.pieces)) * element_size
        return np.tile(sizes, self.chunks // self.pieces)

    def messages_sent(self) -> np.ndarray:
        """Messages each rank sends: one for each chunk and round. Shape ``(world_size,)``."""
        counts = np.zeros(self.world_size, dtype=np.int64)
        for round in self.rounds:
            np.add.at(counts, round.src, 1)
        return counts


def chunk_bounds(numel: int, chunks: int) -> np.ndarray:
    """Where each chunk of a buffer of ``numel`` elements begins, and the end: ``chunks + 1`` offsets in elements.

    Sizes differ by at most one element. So do the sizes of any two runs of equally many neighbouring chunks, because
    the larger chunks are spread out: no rank of a ring carries a whole chunk more than its share.

    >>> chunk_bounds(7, 3).tolist()
    [0, 2, 4, 7]
    """
    return np.arange(chunks + 1) * numel // chunks


def check_world_size(world_size: int, root: int = 0) -> None:
    """Raise ValueError unless ``world_size`` is a whole number from 1 and ``root`` one of its ranks."""
    if not is_whole(world_size) or world_size < 1:
        raise ValueError(f"world_size is {world_size!r}; give a whole number of ranks, from 1")
    if not is_whole(root) or not 0 <= root < world_size:
        raise ValueError(f"root is {root!r}; with {world_size} ranks it is one of 0 to {world_size - 1}")


def is_whole(number: object) -> bool:
    """Whether it is a whole number: not 2.0, "2" or True."""
    return isinstance(number, (int, np.integer)) and not isinstance(number, bool)


def is_number(number: object) -> bool:
    """Whether it is a real number: not "2" or True."""
    return isinstance(number, Real) and not isinstance(number, bool)
