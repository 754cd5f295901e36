"""One rank's steps, played by all ranks at once on arrays: in any order that messages may arrive in, without ranks.

A message is carried over at any moment between being posted at both ends and being waited for at either: reading too
early or too late, landing on what is still needed and waiting for one another all show.
"""

import numpy as np
import pytest

from ringzero.collectives import ALGORITHMS, Round, Schedule, chunk_bounds, messages, program, world_sizes
from ringzero.collectives.direct import one_shot_all_reduce, two_shot_all_reduce
from ringzero.collectives.program import Combine, Copy, Receive, Send, Wait
from tests.algorithms import every_algorithm, grids, some_options

WORLD_SIZES = range(1, 7)
NUMELS = (0, 1, 7, 100)
ELEMENT = 4  # bytes


class Players:
    """All ranks of a schedule on arrays of whole numbers, ``memory[rank]`` being the buffers that are not scratch."""

    def __init__(self, schedule, memory, numel, by_round=False):
        self.n = schedule.world_size
        programs = [program.program(schedule, rank, numel, ELEMENT, by_round) for rank in range(self.n)]
        self.todo = [iter(made.steps) for made in programs]
        self.next = [next(steps, None) for steps in self.todo]
        self.memory = [
            [*own, None][:2] + [np.full(made.scratch, -7)] for own, made in zip(memory, programs, strict=True)
        ]
        self.over = [[] for _ in range(self.n)]  # by rank and request
        self.posted = {}  # (src, dst) -> (sends, receives) not yet met
        self.under_way = []

    def play(self, rng):
        """Until nothing can happen: carry any message over that both ends posted, or let any rank take a step."""
        while able := [r for r in range(self.n) if self._may_step(r)] + self.under_way:
            chosen = rng.integers(len(able))
            if chosen >= len(able) - len(self.under_way):
                self._carry(*self.under_way.pop(chosen - len(able)))
            else:
                self._step(able[chosen])
        assert self.next == [None] * self.n, "deadlock"
        assert not any(sends or receives for sends, receives in self.posted.values()), "a message nobody takes"

    def _may_step(self, rank):
        step = self.next[rank]
        return step is not None and not (isinstance(step, Wait) and not self.over[rank][step.request])

    def _view(self, rank, where):
        return self.memory[rank][where.buffer][where.start : where.stop]

    def _step(self, rank):
        step, self.next[rank] = self.next[rank], next(self.todo[rank], None)
        if isinstance(step, Copy):
            self._view(rank, step.into)[:] = self._view(rank, step.source)
        elif isinstance(step, Combine):
            self._view(rank, step.into)[:] += self._view(rank, step.arrived)
        elif isinstance(step, (Send, Receive)):
            sends = isinstance(step, Send)
            where = step.source if sends else step.into
            ends = self.posted.setdefault((rank, step.peer) if sends else (step.peer, rank), ([], []))
            ends[not sends].append((rank, where, len(self.over[rank])))
            self.over[rank].append(False)
            if ends[0] and ends[1]:
                self.under_way.append((ends[0].pop(0), ends[1].pop(0)))

    def _carry(self, send, receive):
        (src, source, sent), (dst, into, received) = send, receive
        assert source.stop - source.start == into.stop - into.start, "the ends cut the message differently"
        self._view(dst, into)[:] = self._view(src, source)
        self.over[src][sent] = self.over[dst][received] = True


def wrong_ranks(schedule, numel, rng, by_round=False):
    """Play ``schedule``; the ranks that do not hold in the end what the collective promises."""
    n, bounds = schedule.world_size, chunk_bounds(numel, schedule.world_size)
    chunk = [slice(bounds[rank], bounds[rank + 1]) for rank in range(n)]
    source = [rng.integers(-1000, 1000, numel) for _ in range(n)]
    total, gathered = sum(source), np.concatenate([source[rank][chunk[rank]] for rank in range(n)])
    if schedule.collective == "all_to_all":
        result = [np.zeros(n * (chunk[rank].stop - chunk[rank].start), int) for rank in range(n)]
        memory = list(zip([part.copy() for part in source], result, strict=True))
    else:
        result = [part.copy() for part in source]
        memory = [(buffer,) for buffer in result]
    Players(schedule, memory, numel, by_round).play(rng)
    promised = {
        "all_reduce": lambda rank: (slice(None), total),
        "reduce": lambda rank: (slice(None), total) if rank == schedule.root else (chunk[0], result[rank][chunk[0]]),
        "reduce_scatter": lambda rank: (chunk[rank], total[chunk[rank]]),
        "all_gather": lambda rank: (slice(None), gathered),
        "gather": lambda rank: (
            (slice(None), gathered) if rank == schedule.root else (chunk[rank], source[rank][chunk[rank]])
        ),
        "broadcast": lambda rank: (slice(None), source[schedule.root]),
        "scatter": lambda rank: (chunk[rank], source[schedule.root][chunk[rank]]),
        "all_to_all": lambda rank: (slice(None), np.concatenate([part[chunk[rank]] for part in source])),
        "barrier": lambda rank: (slice(0, 0), ()),
    }[schedule.collective]
    return [rank for rank in range(n) if not np.array_equal(result[rank][promised(rank)[0]], promised(rank)[1])]


LIMITS = [(messages.SEGMENT_BYTES, messages.PACKED_BYTES), (28, 16), (28, 0)]  # bytes: as they are, and a few elements


@every_algorithm
@pytest.mark.parametrize("limits", LIMITS)
def test_whenever_messages_arrive(collective, name, limits, monkeypatch):
    monkeypatch.setattr(messages, "SEGMENT_BYTES", limits[0])
    monkeypatch.setattr(messages, "PACKED_BYTES", limits[1])
    rng = np.random.default_rng(len(name))
    for n in world_sizes(collective, name, max(WORLD_SIZES)):
        for options in some_options(collective, name, n) + [{"shape": shape} for shape in grids(collective, name, n)]:
            schedule = ALGORITHMS[collective][name](n, **options)
            for numel in NUMELS:
                assert wrong_ranks(schedule, numel, rng) == [], (schedule, numel)


@every_algorithm
def test_round_by_round(collective, name):
    """As on NCCL."""
    rng = np.random.default_rng(1)
    for n in world_sizes(collective, name, max(WORLD_SIZES)):
        assert wrong_ranks(ALGORITHMS[collective][name](n), 100, rng, by_round=True) == []


def arbitrary(rng):
    """A schedule that computes nothing in particular; in a round no two transfers go to the same place."""
    n, chunks, rounds = rng.integers(2, 6), rng.integers(1, 13), []
    for _ in range(rng.integers(1, 7)):
        places = rng.permutation(n * chunks)[: rng.integers(1, n * chunks + 1)]
        dst, chunk = np.divmod(places, chunks)
        src = (dst + rng.integers(1, n, len(dst))) % n
        rounds.append(Round(src, dst, chunk, rng.integers(2, size=len(dst))))
    return Schedule("all_reduce", "arbitrary", int(n), int(chunks), rounds)


def by_the_book(schedule, buffers):
    """What a schedule means: in each round, everything is read before anything is written."""
    bounds = chunk_bounds(len(buffers[0]), schedule.chunks)
    for round in schedule.rounds:
        held = [buffer.copy() for buffer in buffers]
        for src, dst, chunk, reduce in round:
            where = slice(bounds[chunk], bounds[chunk + 1])
            buffers[dst][where] = held[src][where] + reduce * held[dst][where]


@pytest.mark.parametrize("by_round", [False, True])
@pytest.mark.parametrize("limits", [*LIMITS, (4, 0)])
def test_any_schedule_does_what_it_means(limits, by_round, monkeypatch):
    monkeypatch.setattr(messages, "SEGMENT_BYTES", limits[0])
    monkeypatch.setattr(messages, "PACKED_BYTES", limits[1])
    for seed in range(150):
        rng = np.random.default_rng(seed)
        schedule = arbitrary(rng)
        buffers = [rng.integers(-1000, 1000, 30) for _ in range(schedule.world_size)]
        expected = [buffer.copy() for buffer in buffers]
        by_the_book(schedule, expected)
        Players(schedule, [(buffer,) for buffer in buffers], 30, by_round).play(rng)
        assert np.array_equal(buffers, expected), (seed, schedule)


@pytest.mark.parametrize("numel", [10, 1000])
def test_neighbouring_chunks_are_one_message_and_scattered_small_ones_too(numel):
    steps = program.program(ALGORITHMS["all_gather"]["bruck"](5), 3, numel, ELEMENT).steps
    assert sum(isinstance(step, Send) for step in steps) == 3  # one a round, also where chunks 3, 4, 0 travel


def test_scratch_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(messages, "SEGMENT_BYTES", 40)
    monkeypatch.setattr(messages, "PACKED_BYTES", 0)
    made = program.program(ALGORITHMS["all_reduce"]["recursive_doubling"](4), 0, 10_000, ELEMENT)
    assert made.scratch == program.LANDINGS * 10


@pytest.mark.parametrize("make", [one_shot_all_reduce, two_shot_all_reduce])
def test_more_arrivals_in_a_round_than_places_to_land(make):
    """A rank that waited for a place before it had sent would hold up all others, and they it."""
    for n in (program.LANDINGS + 1, program.LANDINGS + 2, 3 * program.LANDINGS):
        for numel in (7, 100):
            assert wrong_ranks(make(n), numel, np.random.default_rng(n)) == [], (n, numel)


BROKEN = {
    "combines before its own copy has been sent": ("_await_sends", lambda self, message: None),
    "sends before what it sends has arrived": ("_settle_touching", lambda self, message, before: None),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_missing_wait_shows(fault, monkeypatch):
    monkeypatch.setattr(program._Order, *BROKEN[fault])
    schedule = ALGORITHMS["all_reduce"]["recursive_doubling"](4)
    with pytest.raises(AssertionError):
        assert not any(wrong_ranks(schedule, 100, np.random.default_rng(seed)) for seed in range(20))
