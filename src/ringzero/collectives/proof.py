"""Proof by bookkeeping: which ranks' contributions are in which chunk, after every round.

Where contributions are summed, the state is a set of ranks for each (rank, chunk), kept as bits. A reduction may only
join disjoint sets, so a contribution is never counted twice; at the end every chunk must hold exactly the set the
collective promises. A copy may not share its place with another arrival of the round. A barrier is the same, but sets
may overlap. Where chunks are only copied, one bit says whether a rank has a chunk. In an all-to-all each of the N·N
chunks passes through few ranks, so these ranks are listed for every chunk instead. Chunks never mix, so they are
checked a block at a time and memory stays bounded.
"""

from itertools import pairwise

import numpy as np

from ringzero.collectives.schedule import Schedule

BLOCK_BYTES = 128 * 2**20  # the state held at once, and the transfers kept for it
_SUMMING = ("all_reduce", "reduce_scatter", "reduce", "barrier")


class ScheduleError(AssertionError):
    """A schedule does not compute its collective; the message names the round, ranks and chunk."""


def verify(schedule: Schedule) -> None:
    """Prove that ``schedule`` computes its collective, or raise ScheduleError.

    The ring of 1,024 ranks, two million transfers, takes about half a second. The state held at once takes at most
    ``BLOCK_BYTES``, unless the state of a single chunk takes more. The same holds for the transfers that are kept for
    later blocks, unless those of a single block take more.
    """
    summing = schedule.collective in _SUMMING
    kind = _Reached if schedule.collective == "all_to_all" else _Sets if summing else _Copies
    arrivals = np.zeros(schedule.chunks, dtype=np.int32)
    for number, round in enumerate(schedule.rounds):
        _check_transfers(schedule, number, round, may_reduce=summing)
        np.add.at(arrivals, round.chunk, 1)
    most_arrivals = int(arrivals.max(initial=0))
    width = max(1, BLOCK_BYTES // kind.bytes_per_chunk(schedule.world_size, most_arrivals))
    for first, last, rounds in _blocks(schedule, width, arrivals):
        state = kind(schedule, first, last, most_arrivals)
        for number, src, dst, chunk, reduce in rounds:
            state.play(number, src, dst, chunk, reduce)
        state.check_end()


def _blocks(schedule, width, arrivals):
    """Yield ``(first, last, rounds)`` for runs of ``width`` chunks; a round is ``(number, src, dst, chunk, reduce)``.

    Making a round is half the work. So it is made once for several blocks, as many as fit in memory.
    """
    if width >= schedule.chunks:
        yield 0, schedule.chunks, ((i, r.src, r.dst, r.chunk, r.reduce) for i, r in enumerate(schedule.rounds))
        return
    starts = [*range(0, schedule.chunks, width), schedule.chunks]
    size = 13 * max(1, int(np.add.reduceat(arrivals, starts[:-1]).max()))  # bytes of the busiest block's transfers
    at_once = max(1, BLOCK_BYTES // size)
    for begin in range(0, len(starts) - 1, at_once):
        bounds = starts[begin : begin + at_once + 1]
        kept = []
        for number, round in enumerate(schedule.rounds):
            inside = np.flatnonzero((round.chunk >= bounds[0]) & (round.chunk < bounds[-1]))
            inside = inside[np.argsort(round.chunk[inside], kind="stable")]
            columns = [column[inside].astype(np.int32) for column in (round.src, round.dst, round.chunk)]
            kept.append((number, *columns, round.reduce[inside], np.searchsorted(columns[2], bounds).tolist()))
        for block, (first, last) in enumerate(pairwise(bounds)):
            slices = ((row, slice(row[-1][block], row[-1][block + 1])) for row in kept)
            yield first, last, ((row[0], *(column[s] for column in row[1:5])) for row, s in slices if s.stop > s.start)


class _Block:
    """Chunks ``first`` to ``last`` - 1 on all ranks; ``cells`` is the number of places a transfer can write to."""

    def __init__(self, schedule, first, last, cells):
        self.schedule, self.first, self.last = schedule, first, last
        self.n, self.width = schedule.world_size, last - first
        self._signature = np.empty(cells, dtype=np.int32)

    def waves(self, cell):
        """Split transfers so that within one part no two write to the same cell."""
        mine = np.arange(len(cell), dtype=np.int32)
        self._signature[cell] = mine  # a transfer that finds another's number shares its cell
        if (self._signature[cell] == mine).all():
            return [slice(None)]
        order = np.argsort(cell, kind="stable")
        starts = np.flatnonzero(np.concatenate(([True], cell[order][1:] != cell[order][:-1])))
        lengths = np.diff(np.append(starts, len(cell)))
        occurrence = np.empty(len(cell), dtype=np.int64)
        occurrence[order] = np.arange(len(cell)) - np.repeat(starts, lengths)
        return [np.flatnonzero(occurrence == wave) for wave in range(occurrence.max() + 1)]

    def not_as_promised(self, rank, chunk, ranks):
        return ScheduleError(
            f"{self.schedule}: after the last round rank {rank} does not hold chunk {self.first + chunk} as promised; "
            f"what is missing or too much comes from ranks {', '.join(map(str, ranks[:8]))}{' …' * (len(ranks) > 8)}"
        )


class _Sets(_Block):
    """The ranks whose contributions are in each (rank, chunk), as bits."""

    def __init__(self, schedule, first, last, most_arrivals):
        super().__init__(schedule, first, last, schedule.world_size * (last - first))
        ranks = np.arange(self.n)
        own = np.zeros((self.n, 1, (self.n + 63) // 64), dtype=np.uint64)
        own[ranks, 0, ranks // 64] = np.uint64(1) << (ranks % 64).astype(np.uint64)
        self.all = np.bitwise_or.reduce(own, axis=(0, 1))
        self.state = np.repeat(own, self.width, axis=1).reshape(self.n * self.width, -1)

    @staticmethod
    def bytes_per_chunk(n, most_arrivals):
        return n * ((n + 63) // 64) * 8

    def play(self, number, src, dst, chunk, reduce):
        barrier = self.schedule.collective == "barrier"  # a barrier may hear of a rank twice
        column = chunk - self.first
        incoming = self.state[src.astype(np.intp) * self.width + column]  # what the sources held at the round's start
        cell = dst.astype(np.intp) * self.width + column
        waves = self.waves(cell)
        if len(waves) > 1 and not barrier:
            unclear = np.isin(cell, cell[waves[1]]) & ~reduce
            if unclear.any():
                what = "copies to where another transfer of the round arrives: it is not defined which comes last"
                _fail(number, src, dst, chunk, unclear, what)
        for wave in waves:
            at, arriving, adds = cell[wave], incoming[wave], reduce[wave]
            if barrier:
                arriving |= self.state[at]
            elif adds.any():
                held = self.state[at] if adds.all() else self.state[at] * adds[:, None]
                twice = (arriving & held).any(axis=1)
                if twice.any():
                    what = "adds a contribution already in the sum"
                    _fail(number, src[wave], dst[wave], chunk[wave], twice, what)
                arriving |= held
            self.state[at] = arriving

    def check_end(self):
        state = self.state.reshape(self.n, self.width, -1)
        owner = self.schedule.owner[self.first : self.last]
        for rank in range(self.n) if self.schedule.collective != "reduce" else [self.schedule.root]:
            its = np.flatnonzero(owner == rank) if self.schedule.collective == "reduce_scatter" else slice(None)
            wrong = (state[rank, its] != self.all).any(axis=-1)
            if wrong.any():
                chunk = np.arange(self.width)[its][np.flatnonzero(wrong)[0]]
                bits = state[rank, chunk] ^ self.all
                differ = [r for r in range(self.n) if int(bits[r // 64]) >> (r % 64) & 1]
                raise self.not_as_promised(rank, chunk, differ)


class _Copies(_Block):
    """Whether each rank has each chunk."""

    def __init__(self, schedule, first, last, most_arrivals):
        super().__init__(schedule, first, last, 0)
        self.state = np.zeros((self.n, self.width), dtype=bool)
        self.owner = schedule.owner[first:last]
        self.origin = np.full(self.width, schedule.root) if schedule.collective == "scatter" else self.owner
        self.state[self.origin, np.arange(self.width)] = True

    @staticmethod
    def bytes_per_chunk(n, most_arrivals):
        return n

    def play(self, number, src, dst, chunk, reduce):
        column = chunk - self.first
        missing = ~self.state[src, column]
        if missing.any():
            _fail(number, src, dst, chunk, missing, "sends something it does not hold yet")
        self.state[dst, column] = True

    def check_end(self):
        promised = np.ones((self.n, self.width), dtype=bool)
        if self.schedule.collective == "gather":
            promised = np.arange(self.n)[:, None] == self.schedule.root
        elif self.schedule.collective == "scatter":
            promised = np.arange(self.n)[:, None] == self.owner
        rank, chunk = np.nonzero(promised & ~self.state)
        if len(rank):
            raise self.not_as_promised(rank[0], chunk[0], self.origin[chunk[:1]].tolist())


class _Reached(_Block):
    """The ranks that each chunk has reached, in order; -1 for none yet."""

    def __init__(self, schedule, first, last, most_arrivals):
        super().__init__(schedule, first, last, last - first)
        self.origin = np.arange(first, last) // self.n
        self.state = np.full((self.width, 1 + most_arrivals), -1, dtype=_rank_type(self.n))
        self.state[:, 0] = self.origin
        self.count = np.ones(self.width, dtype=np.int32)

    @staticmethod
    def bytes_per_chunk(n, most_arrivals):
        return (1 + most_arrivals) * _rank_type(n)().itemsize

    def play(self, number, src, dst, chunk, reduce):
        column = chunk - self.first
        missing = ~(self.state[column] == src[:, None]).any(axis=1)
        if missing.any():
            _fail(number, src, dst, chunk, missing, "sends something it does not hold yet")
        for wave in self.waves(column):
            at = column[wave]
            self.state[at, self.count[at]] = dst[wave]
            self.count[at] += 1

    def check_end(self):
        target = self.schedule.owner[self.first : self.last]
        missing = np.flatnonzero((self.state != target[:, None]).all(axis=1))
        if len(missing):
            raise self.not_as_promised(target[missing[0]], missing[0], [self.origin[missing[0]]])


def _rank_type(n):
    return np.int16 if n <= 2**15 else np.int32


def _check_transfers(schedule, number, round, may_reduce):
    n = schedule.world_size
    for name, column, limit in (("src", round.src, n), ("dst", round.dst, n), ("chunk", round.chunk, schedule.chunks)):
        outside = (column < 0) | (column >= limit)
        if outside.any():
            _fail(number, round.src, round.dst, round.chunk, outside, f"has {name} outside 0 to {limit - 1}")
    to_itself = round.src == round.dst
    if to_itself.any():
        _fail(number, round.src, round.dst, round.chunk, to_itself, "sends to itself")
    if not may_reduce and round.reduce.any():
        what = f"reduces, and {schedule.collective} only copies"
        _fail(number, round.src, round.dst, round.chunk, round.reduce, what)


def _fail(number, src, dst, chunk, bad, what):
    i = int(np.flatnonzero(bad)[0])
    raise ScheduleError(f"round {number}: the transfer {src[i]}→{dst[i]} of chunk {chunk[i]} {what}")
