"""Schedules as data: proved, counted, and refused when they are wrong."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringzero.collectives import (
    ALGORITHMS,
    Round,
    Rounds,
    Schedule,
    ScheduleError,
    chunk_bounds,
    grid,
    proof,
    verify,
    world_sizes,
)
from ringzero.collectives.direct import one_shot_all_reduce, two_shot_all_reduce
from ringzero.collectives.exchange import pairwise_all_to_all
from ringzero.collectives.flat import flat_all_reduce
from ringzero.collectives.recursive import dissemination_barrier, recursive_doubling_all_gather
from ringzero.collectives.ring import bidirectional_ring_all_reduce, ring_all_reduce, ring_broadcast
from ringzero.collectives.schedule import traffic_in_chunks
from ringzero.collectives.trees import binary_tree_broadcast, double_binary_tree_broadcast
from tests.algorithms import EVERY, every_algorithm, grids, some_options

SLOW = 2e6  # transfers: the proof takes seconds. To run all: python -m tests.collectives.test_schedules


def variants(collective, name, n):
    """The schedule as it comes, and one with every option that it takes set to something else."""
    return [ALGORITHMS[collective][name](n, **options) for options in some_options(collective, name, n)]


def transfers(schedule):
    """How many there are, without making a round."""
    return sum(traffic.share.sum() * traffic.times for traffic in traffic_in_chunks(schedule.rounds))


@every_algorithm
def test_proved_for_every_small_world_and_some_large(collective, name):
    """Every number of ranks but where the docstring says otherwise."""
    powers = "unless N is a power of two" in ALGORITHMS[collective][name].__doc__
    small = [1, 2, 4, 8, 16, 32, 64] if powers else [*range(1, 65)]
    assert world_sizes(collective, name, 64) == small
    for n in small + ([128, 1024] if powers else [100, 1000]):
        for schedule in variants(collective, name, n):
            assert (schedule.collective, schedule.name, schedule.world_size) == (collective, name, n)
            verify(schedule)
    if transfers(large := ALGORITHMS[collective][name](4096)) < SLOW:
        verify(large)


def play(schedule, buffers):
    """What the ranks hold in the end. ``buffers[rank, chunk]`` is one number a chunk."""
    buffers = buffers.copy()
    for round in schedule.rounds:
        incoming = buffers[round.src, round.chunk]
        for (_, dst, chunk, reduce), value in zip(round, incoming, strict=True):
            buffers[dst, chunk] = buffers[dst, chunk] + value if reduce else value
    return buffers


@pytest.mark.parametrize(("collective", "name"), [case for case in EVERY if case[0] != "barrier"])
def test_numbers_end_where_they_should(collective, name):
    """What is proved is what the collective means: the schedule played on numbers, by a few lines of its own."""
    sizes = sorted({1, 2, 3, 4, 5, 8, 12} & set(world_sizes(collective, name, 12)))
    for schedule in [schedule for n in sizes for schedule in variants(collective, name, n)]:
        n, chunks, root = schedule.world_size, np.arange(schedule.chunks), schedule.root
        before = np.random.default_rng(n).integers(0, 2**40, (n, schedule.chunks))
        after = play(schedule, before)
        if collective == "all_to_all":
            for src, dst in np.ndindex(n, n):
                assert after[dst, src * n + dst] == before[src, src * n + dst]
            continue
        own = chunks * n // schedule.chunks  # whose each chunk is
        total, gathered = before.sum(axis=0), before[own, chunks]
        if collective == "all_reduce":
            assert (after == total).all()
        elif collective == "reduce":
            assert (after[root] == total).all()
        elif collective == "reduce_scatter":
            assert (after[own, chunks] == total).all()
        elif collective == "all_gather":
            assert (after == gathered).all()
        elif collective == "gather":
            assert (after[root] == gathered).all()
        elif collective == "broadcast":
            assert (after == before[root]).all()
        elif collective == "scatter":
            assert (after[own, chunks] == before[root]).all()


@every_algorithm
def test_no_rank_sends_to_two_or_receives_from_two_in_one_round(collective, name):
    """So a round takes one alpha and as long as its longest message, but where the docstring says so.

    No round is empty.
    """
    at_once = "sends to several ranks at once" in ALGORITHMS[collective][name].__doc__
    for n in world_sizes(collective, name, 17):
        for schedule in variants(collective, name, n):
            several = False
            for round in schedule.rounds:
                links = np.unique(np.stack((round.src, round.dst)), axis=1)
                assert links.shape[1] > 0
                several |= not len(set(links[0])) == len(set(links[1])) == links.shape[1]
            assert several == (at_once and n > 2)


@every_algorithm
def test_what_a_generator_says_of_its_traffic_is_what_its_rounds_send(collective, name):
    for n in world_sizes(collective, name, 13):
        for schedule in variants(collective, name, n):
            said, found = (
                [
                    sorted(zip(*(column.tolist() for column in t[:4]), strict=True))
                    for t in traffic
                    for _ in range(t.times)
                ]
                for traffic in (schedule.traffic(), traffic_in_chunks(tuple(schedule.rounds)))
            )
            found = [[(s, d, *(x / schedule.pieces for x in shares)) for s, d, *shares in round] for round in found]
            assert said == found


def test_traffic_joins_chunks_and_rounds_that_look_alike():
    rounds = (
        Round(src=[0, 0, 1], dst=[1, 1, 0], chunk=[0, 1, 2], reduce=[True, False, False]),
        Round(src=[1, 0, 0], dst=[0, 1, 1], chunk=[3, 2, 3], reduce=[False, False, True]),
        Round(src=0, dst=1, chunk=0, reduce=False),
    )
    first, second = Schedule("all_reduce", "any", 2, 4, rounds).traffic()
    assert [column.tolist() for column in first[:4]] == [[0, 1], [1, 0], [0.5, 0.25], [0.25, 0.0]]
    assert first.times == 2
    assert [column.tolist() for column in second[:4]] == [[0], [1], [0.25], [0.0]]
    assert first.share.dtype == first.reduced.dtype == np.float64


def test_traffic_of_a_ring_is_one_line_for_each_half():
    assert [(t.times, t.share[0], t.reduced[0]) for t in ring_all_reduce(65_536).traffic()] == [
        (65_535, 1 / 65_536, 1 / 65_536),
        (65_535, 1 / 65_536, 0),
    ]
    assert list(ring_all_reduce(1).traffic()) == []


@every_algorithm
def test_no_round_is_made_before_it_is_looked_at(collective, name, monkeypatch):
    monkeypatch.setattr(Round, "__init__", None)
    assert len(ALGORITHMS[collective][name](65_536).rounds) > 0
    with pytest.raises(TypeError):
        Round(0, 1, 0, False)


def test_rounds_are_a_sequence():
    rounds = ring_all_reduce(5).rounds
    assert len(rounds) == len(list(rounds)) == 8
    assert repr(rounds[-1]) == repr(rounds[7]) == repr(list(rounds)[-1]) != repr(rounds[6])
    assert [repr(r) for r in rounds[5:1:-2]] == [repr(rounds[5]), repr(rounds[3])]
    assert len(rounds[8:]) == 0
    with pytest.raises(IndexError):
        rounds[8]
    assert repr(Rounds(2, lambda step: Round(step, 2, step, False)).backwards(True)[0]) == "Round(2→1 +1)"


def test_the_ring_is_proved_for_1024_ranks():
    start = time.perf_counter()
    verify(ring_all_reduce(1024))
    print(f"verify(ring_all_reduce(1024)): {time.perf_counter() - start:.2f} s")  # reported, never asserted


@every_algorithm
def test_any_transfer_left_out_doubled_or_misdirected_is_noticed(collective, name):
    """Break a correct schedule in every place, in each of four ways: the proof must fail every time."""
    n = 6 if grids(collective, name, 6) else world_sizes(collective, name, 5)[-1]
    for schedule in variants(collective, name, n):
        arrivals = np.zeros((n, schedule.chunks), dtype=int)
        arrivals[schedule.root if collective == "broadcast" else []] = 1
        for round in schedule.rounds:
            np.add.at(arrivals, (round.dst, round.chunk), 1)
        broken = 0
        for at, round in enumerate(schedule.rounds):
            transfers = list(round)
            for i, t in enumerate(transfers):
                rest = transfers[:i] + transfers[i + 1 :]
                wrong_chunk = t._replace(chunk=(t.chunk + 1) % schedule.chunks)
                if collective == "broadcast" and arrivals[t.dst, t.chunk] > 1:
                    continue  # an all-gather after a scatter brings some ranks what they have passed on before
                faults = [rest]
                if t.reduce:  # (a partial sum that skips a rank on its way is no fault: each still counts once)
                    if collective != "barrier":  # (to hear a thing twice is no fault)
                        faults.append([*transfers, t])
                        faults.append([*rest, t._replace(reduce=False)])
                else:
                    faults.append([*rest, t._replace(dst=(t.dst + 1) % n)])
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
    # Rank 0 would have all three if the copy came first, and the executor may take it last.
    there, back = Round(0, 2, 0, True), Round(src=[2, 1], dst=[0, 0], chunk=[0, 0], reduce=[False, True])
    with pytest.raises(ScheduleError, match="round 1: the transfer 2→0 of chunk 0 copies to where another transfer"):
        verify(Schedule("reduce", "unclear", 3, 1, (there, back), root=0))
    with pytest.raises(ScheduleError, match="rank 1 does not hold chunk 0 as promised.*ranks 0"):
        verify(Schedule("broadcast", "lazy", 2, 1, (), root=0))
    with pytest.raises(ScheduleError, match="round 0: the transfer 1→0 of chunk 0 sends something it does not hold"):
        verify(Schedule("broadcast", "backwards", 2, 1, (Round(1, 0, 0, False),), root=0))
    with pytest.raises(ScheduleError, match="dst outside 0 to 1"):
        verify(Schedule("broadcast", "far", 2, 1, (Round(0, 2, 0, False),), root=0))
    with pytest.raises(ScheduleError, match="round 0: the transfer 0→1 of chunk 0 reduces, and broadcast only copies"):
        verify(Schedule("broadcast", "adds", 2, 1, (Round(0, 1, 0, True),), root=0))
    with pytest.raises(ScheduleError, match="round 0: the transfer 1→0 of chunk 0 sends something it does not hold"):
        verify(Schedule("all_to_all", "of another", 2, 4, (Round(1, 0, 0, False),)))
    with pytest.raises(ScheduleError, match="rank 1 does not hold chunk 1 as promised.*ranks 0"):
        verify(Schedule("all_to_all", "one way", 2, 4, (Round(1, 0, 2, False),)))
    with pytest.raises(ScheduleError, match="rank 0 does not hold chunk 0 as promised.*ranks 1, 2"):
        verify(Schedule("barrier", "one way", 3, 1, (Round(0, [1, 2], 0, False),)))
    with pytest.raises(ScheduleError, match="sends to itself"):
        verify(Schedule("broadcast", "self", 2, 1, (Round(0, 0, 0, False),), root=0))


@pytest.mark.parametrize("blocks", [1, 3])
def test_checking_in_blocks_of_chunks_changes_nothing(blocks, monkeypatch):
    monkeypatch.setattr(proof, "BLOCK_BYTES", 70 * 2 * 8 * 70 // blocks)
    verify(ring_all_reduce(70))
    with pytest.raises(ScheduleError):
        verify(with_round(ring_all_reduce(70), 137, list(ring_all_reduce(70).rounds[137])[:-1]))


@every_algorithm
def test_checking_a_chunk_at_a_time_changes_nothing(collective, name, monkeypatch):
    monkeypatch.setattr(proof, "BLOCK_BYTES", 1)
    n = world_sizes(collective, name, 9)[-1]
    for schedule in variants(collective, name, n):
        verify(schedule)
        with pytest.raises(ScheduleError):
            verify(with_round(schedule, len(schedule.rounds) - 1, []))


def test_blocks_share_the_rounds_that_fit_in_memory(monkeypatch):
    monkeypatch.setattr(proof, "BLOCK_BYTES", 70 * 2 * 8 * 70 // 10)
    looked_at = []
    ring = ring_all_reduce(70)
    rounds = Rounds(len(ring.rounds), lambda step: looked_at.append(step) or ring.rounds[step])
    verify(Schedule("all_reduce", "watched", 70, 70, rounds))
    # Ten blocks of seven chunks. A block's transfers take 13 * 7 * 138 bytes: no more than one block's fit at once.
    assert len(looked_at) == 11 * 138


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


def heard_from(schedule):
    """For each rank the ranks, itself among them, whose entering the collective it cannot leave without."""
    heard = [{rank} for rank in range(schedule.world_size)]
    for round in schedule.rounds:
        before = [set(ranks) for ranks in heard]
        for transfer in round:
            heard[transfer.dst] |= before[transfer.src]
    return heard


WITH_ROOT = ("broadcast", "scatter", "reduce", "gather")


@every_algorithm
def test_without_a_root_nobody_leaves_before_the_last_has_come(collective, name):
    """Chapter 2. With a root, the schedule "flat" makes only the root wait, or everybody only for the root."""
    for n in {2, 3, 4, 8} & set(world_sizes(collective, name, 8)):
        everyone, heard = set(range(n)), heard_from(ALGORITHMS[collective][name](n))
        if collective not in WITH_ROOT:
            assert heard == [everyone] * n
        elif name == "flat" and collective in ("broadcast", "scatter"):
            assert heard == [{0, rank} for rank in range(n)]
        elif name == "flat":
            assert heard == [everyone] + [{rank} for rank in range(1, n)]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 64])
def test_all_to_all_at_once(n):
    """One-shot: one round, and N-1 whole buffers from each rank. Two-shot: two rounds and the ring's bytes."""
    one, two, ring = one_shot_all_reduce(n), two_shot_all_reduce(n), ring_all_reduce(n)
    verify(one)
    assert (len(one.rounds), len(two.rounds)) == ((1, 2) if n > 1 else (0, 0))
    assert one.bytes_sent(1000, 4).tolist() == [(n - 1) * 4000] * n
    assert two.bytes_sent(n * 1000, 4).tolist() == ring.bytes_sent(n * 1000, 4).tolist()


def test_a_ring_both_ways_uses_both_links_of_a_rank_alike():
    table = bidirectional_ring_all_reduce(5).link_bytes(1000, 4)
    assert table[2].tolist() == [0, 3200, 0, 3200, 0]  # 2(N-1)/N of half the buffer each way
    assert table.sum() == ring_all_reduce(5).link_bytes(1000, 4).sum()


def test_the_naive_all_reduce_loads_the_root():
    sent = flat_all_reduce(4).bytes_sent(100, 4)
    assert sent.tolist() == [1200, 400, 400, 400]
    assert flat_all_reduce(4).link_bytes(100, 4).sum(axis=0).tolist() == [1200, 400, 400, 400]


def test_pipelined_broadcast_takes_n_minus_2_plus_k_rounds():
    assert len(ring_broadcast(8).rounds) == 7
    assert len(ring_broadcast(8, chunks=100).rounds) == 106
    assert ring_broadcast(8, chunks=100).bytes_sent(1000, 1).tolist() == [1000] * 7 + [0]


def test_bytes_where_the_chunks_are_not_the_buffer():
    """An all-to-all's numel is what one rank brings: N chunks of its own. A barrier sends messages without bytes."""
    assert pairwise_all_to_all(4).bytes_sent(10, 4).tolist() == [32, 28, 32, 28]  # chunks of 2, 3, 2, 3
    assert dissemination_barrier(4).bytes_sent(10, 4).tolist() == [0] * 4
    assert dissemination_barrier(4).messages_sent().tolist() == [2] * 4
    assert [t.share.tolist() for t in dissemination_barrier(2).traffic()] == [[0.0, 0.0]]


@pytest.mark.parametrize("n", [2, 3, 64, 100])
def test_the_two_trees_share_the_work(n):
    """In one tree the inner ranks send everything twice and the leaves nothing; in two trees none sends above S."""
    one = binary_tree_broadcast(n, chunks=8).bytes_sent(1600, 1)
    two = double_binary_tree_broadcast(n, chunks=8).bytes_sent(1600, 1)
    assert one.sum() == two.sum() == 1600 * (n - 1)
    assert one.max() == min(2, n - 1) * 1600
    assert (one == 0).sum() == (n + 1) // 2
    assert two.max() == 1600


def test_a_grid_of_one_row_is_a_ring():
    ring = [list(round) for round in ring_all_reduce(6).rounds]
    for name in ("torus_2d", "torus_3d", "mesh_2d", "hierarchical_scattered"):
        shape = (1, 1, 6) if name == "torus_3d" else (1, 6)
        assert [list(round) for round in ALGORITHMS["all_reduce"][name](6, shape=shape).rounds] == ring
    assert [list(r) for r in ALGORITHMS["all_reduce"]["hierarchical"](6, shape=(6, 1)).rounds] == ring


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ring_all_reduce(0), "world_size is 0; give a whole number of ranks, from 1"),
        (lambda: ring_all_reduce(2.5), "world_size is 2.5"),
        (lambda: ring_broadcast(4, root=4), "root is 4; with 4 ranks it is one of 0 to 3"),
        (lambda: ring_broadcast(4, chunks=0), "chunks is 0; cut the buffer into at least 1"),
        (lambda: ring_broadcast(4, chunks="3"), "chunks is '3'; cut the buffer into at least 1, a whole number"),
        (lambda: double_binary_tree_broadcast(4, chunks=1.5), "chunks is 1.5; cut the buffer into at least 1, a whole"),
        (lambda: ring_broadcast(4, root=1.0), "root is 1.0; with 4 ranks it is one of 0 to 3"),
        (lambda: ALGORITHMS["all_reduce"]["parameter_server"](4, "2"), "servers is '2'; with 4 ranks it is 1 to 4"),
        (lambda: ALGORITHMS["all_reduce"]["torus_2d"](4, 4), "shape is 4; rows x columns must be 4: one of 1x4"),
        (lambda: Schedule("all_sum", "x", 2, 1, ()), "collective is 'all_sum'; it is one of all_reduce"),
        (lambda: Schedule("all_to_all", "x", 3, 3, ()), "chunks is 3; all_to_all of 3 ranks has 9"),
        (lambda: Schedule("barrier", "x", 3, 3, ()), "chunks is 3; barrier of 3 ranks has 1"),
        (lambda: binary_tree_broadcast(4, chunks=0), "chunks is 0; cut the buffer into at least 1"),
        (lambda: double_binary_tree_broadcast(1, chunks=0), "chunks is 0; cut the buffer into at least 1"),
        (lambda: recursive_doubling_all_gather(12), "world_size is 12; .* such as 8 and 16. Bruck takes"),
        (lambda: ALGORITHMS["all_reduce"]["parameter_server"](4, 5), "servers is 5; with 4 ranks it is 1 to 4"),
        (lambda: grid.torus_2d_all_reduce(0, 3), "world_size is 0"),
        (
            lambda: ALGORITHMS["all_reduce"]["mesh_2d"](12, shape=(3, 5)),
            r"shape is \(3, 5\); rows x columns must be 12: one of 1x12, 2x6, 3x4, 4x3, 6x2, 12x1",
        ),
        (lambda: ALGORITHMS["all_reduce"]["torus_3d"](0), "world_size is 0; give a whole number"),
    ],
)
def test_bad_input_is_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()


if __name__ == "__main__":
    for collective, name in EVERY:
        start = time.perf_counter()
        verify(ALGORITHMS[collective][name](4096))
        print(f"{collective:15} {name:25} {time.perf_counter() - start:6.2f} s", flush=True)
