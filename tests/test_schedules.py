"""Schedules as data: proved, counted, and refused when they are wrong."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringzero.collectives import (
    Round,
    Schedule,
    ScheduleError,
    chunk_bounds,
    flat_all_reduce,
    flat_broadcast,
    flat_reduce,
    ring_all_gather,
    ring_all_reduce,
    ring_broadcast,
    ring_reduce_scatter,
    verify,
)

ALGORITHMS = {
    "ring all_reduce": ring_all_reduce,
    "ring reduce_scatter": ring_reduce_scatter,
    "ring all_gather": ring_all_gather,
    "ring broadcast, whole": ring_broadcast,
    "ring broadcast, 7 pieces from the last rank": lambda n: ring_broadcast(n, root=n - 1, chunks=7),
    "flat all_reduce": flat_all_reduce,
    "flat reduce to the last rank": lambda n: flat_reduce(n, root=n - 1),
    "flat broadcast": flat_broadcast,
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_proved_for_every_small_world_and_some_large(algorithm):
    for world_size in [*range(1, 33), 64, 100, 129]:
        verify(ALGORITHMS[algorithm](world_size))


def test_the_ring_is_proved_for_1024_ranks():
    start = time.perf_counter()
    verify(ring_all_reduce(1024))
    print(f"verify(ring_all_reduce(1024)): {time.perf_counter() - start:.2f} s")  # reported, never asserted


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_any_transfer_left_out_doubled_or_misdirected_is_noticed(algorithm):
    """Break a correct schedule in every place, in each of four ways: the proof must fail every time."""
    schedule = ALGORITHMS[algorithm](5)
    broken = 0
    for at, round in enumerate(schedule.rounds):
        transfers = list(round)
        for i, t in enumerate(transfers):
            rest = transfers[:i] + transfers[i + 1 :]
            wrong_chunk = t._replace(chunk=(t.chunk + 1) % schedule.chunks)
            faults = [rest]
            if t.reduce:  # (a partial sum that skips a rank on its way is no fault: each still counts once)
                faults.append([*transfers, t])
                faults.append([*rest, t._replace(reduce=False)])
            else:
                faults.append([*rest, t._replace(dst=(t.dst + 1) % 5)])
            if wrong_chunk.chunk != t.chunk:
                faults.append([*rest, wrong_chunk])
            for fault in faults:
                if any(f.src == f.dst for f in fault):
                    continue
                with pytest.raises(ScheduleError):
                    verify(with_round(schedule, at, fault))
                broken += 1
    assert broken >= len(schedule.rounds)


def with_round(schedule, at, transfers):
    columns = zip(*transfers, strict=True) if transfers else ([], [], [], [])
    rounds = (*schedule.rounds[:at], Round(*map(list, columns)), *schedule.rounds[at + 1 :])
    return Schedule(schedule.collective, "broken", schedule.world_size, schedule.chunks, rounds, schedule.root)


def test_the_message_of_a_failed_proof_names_the_place():
    twice = Round(src=[1, 1], dst=[0, 0], chunk=[0, 0], reduce=True)
    with pytest.raises(ScheduleError, match="round 0: the transfer 1→0 of chunk 0 adds a contribution already in"):
        verify(Schedule("reduce", "twice", 2, 1, (twice,), root=0))
    with pytest.raises(ScheduleError, match="rank 1 does not hold chunk 0 as promised.*ranks 0"):
        verify(Schedule("broadcast", "lazy", 2, 1, (), root=0))
    with pytest.raises(ScheduleError, match="round 0: the transfer 1→0 of chunk 0 sends something it does not hold"):
        verify(Schedule("broadcast", "backwards", 2, 1, (Round(1, 0, 0, False),), root=0))
    with pytest.raises(ScheduleError, match="dst outside 0 to 1"):
        verify(Schedule("broadcast", "far", 2, 1, (Round(0, 2, 0, False),), root=0))
    with pytest.raises(ScheduleError, match="sends to itself"):
        verify(Schedule("broadcast", "self", 2, 1, (Round(0, 0, 0, False),), root=0))


@pytest.mark.parametrize("blocks", [1, 3])
def test_checking_in_blocks_of_chunks_changes_nothing(blocks, monkeypatch):
    from ringzero.collectives import verify as module

    monkeypatch.setattr(__import__("sys").modules[module.__module__], "BLOCK_BYTES", 70 * 2 * 8 * 70 // blocks)
    verify(ring_all_reduce(70))
    with pytest.raises(ScheduleError):
        verify(with_round(ring_all_reduce(70), 137, list(ring_all_reduce(70).rounds[137])[:-1]))


@given(world_size=st.integers(1, 40), numel=st.integers(0, 5000), element_size=st.sampled_from([1, 2, 4, 8]))
@settings(deadline=None)
def test_the_ring_sends_the_lower_bound(world_size, numel, element_size):
    schedule = ring_all_reduce(world_size)
    sent = schedule.bytes_sent(numel, element_size)
    exact = 2 * (world_size - 1) * numel * element_size / world_size
    chunk = -(-numel // world_size) * element_size
    if numel % world_size == 0:
        assert (sent == exact).all()
    else:
        assert (abs(sent - exact) <= chunk).all()
    assert (schedule.messages_sent() == 2 * (world_size - 1)).all()
    links = schedule.link_bytes(numel, element_size)
    neighbours = np.eye(world_size, dtype=bool)[:, [(r - 1) % world_size for r in range(world_size)]]
    assert not links[~neighbours].any()


@given(numel=st.integers(0, 10_000), chunks=st.integers(1, 300))
def test_chunks_cover_the_buffer_and_differ_by_one_element(numel, chunks):
    sizes = np.diff(chunk_bounds(numel, chunks))
    assert sizes.sum() == numel
    assert sizes.max() - sizes.min() <= 1
    pairs = sizes + np.roll(sizes, 1)
    assert pairs.max() - pairs.min() <= 1


def test_the_naive_all_reduce_loads_the_root():
    sent = flat_all_reduce(4).bytes_sent(100, 4)
    assert sent.tolist() == [1200, 400, 400, 400]
    assert flat_all_reduce(4).link_bytes(100, 4).sum(axis=0).tolist() == [1200, 400, 400, 400]


def test_pipelined_broadcast_takes_n_minus_2_plus_k_rounds():
    assert len(ring_broadcast(8).rounds) == 7
    assert len(ring_broadcast(8, chunks=100).rounds) == 106
    assert ring_broadcast(8, chunks=100).bytes_sent(1000, 1).tolist() == [1000] * 7 + [0]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ring_all_reduce(0), "world_size is 0; give a whole number of ranks, from 1"),
        (lambda: ring_all_reduce(2.5), "world_size is 2.5"),
        (lambda: ring_broadcast(4, root=4), "root is 4; with 4 ranks it is one of 0 to 3"),
        (lambda: ring_broadcast(4, chunks=0), "chunks is 0; cut the buffer into at least 1"),
        (lambda: Schedule("all_sum", "x", 2, 1, ()), "collective is 'all_sum'; it is one of all_reduce"),
    ],
)
def test_bad_input_is_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()
