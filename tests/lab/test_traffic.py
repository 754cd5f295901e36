"""Claims about who sent what to whom and when, on runs made by hand."""

import pytest
import torch

from ringzero.record.operation import Operation
from ringzero_course.lab import failure, traffic
from ringzero_course.lab.runs import Case, Run


def run_of(ranks, messages, numel=12):
    """A run in which each of ``messages`` (src, dst, bytes, sent at, received at) was sent."""
    run = Run(Case(ranks, numel, torch.float32, (), {}), problem=None, operations=[[] for _ in range(ranks)])
    for src, dst, size, sent, received in messages:
        common = {"bytes": size, "members": tuple(range(ranks))}
        run.operations[src].append(Operation("send", src, peer=dst, start=sent, end=sent + 0.1, **common))
        run.operations[dst].append(Operation("recv", dst, peer=src, start=0.0, end=received, **common))
    for rank, ops in enumerate(run.operations):
        ops.sort(key=lambda op: op.start if op.kind == "send" else op.end)
        run.operations[rank] = [op._replace(sequence=sequence) for sequence, op in enumerate(ops)]
    return run


def change(run, of):
    """Give each operation ``op`` of the run the fields ``of(op)``."""
    run.operations = [[op._replace(**of(op)) for op in operations] for operations in run.operations]


FLAT = [(0, 1, 48, 1, 2), (0, 2, 48, 3, 4), (0, 3, 48, 5, 6)]
CHAIN = [(0, 1, 48, 1, 2), (1, 2, 48, 3, 4), (2, 3, 48, 5, 6)]
TREE = [(0, 2, 48, 1, 2), (0, 1, 48, 3, 4), (2, 3, 48, 3, 4)]
NEAR_FIRST = [(0, 1, 48, 1, 2), (0, 2, 48, 3, 4), (2, 3, 48, 5, 6)]
ROUND_THE_RING = [(0, 1, 4, 1, 2), (1, 2, 4, 3, 4), (2, 3, 4, 5, 6), (3, 0, 4, 7, 8)]
DISSEMINATION = [(r, (r + 1) % 4, 4, 1, 2) for r in range(4)] + [(r, (r + 2) % 4, 4, 3, 4) for r in range(4)]
# The second message leaves a rank before the first one has come.
TOO_EARLY = [(r, (r + 1) % 4, 4, 1, 4) for r in range(4)] + [(r, (r + 2) % 4, 4, 3, 5) for r in range(4)]


@pytest.mark.parametrize(
    ("messages", "expected"), [([], 0), (FLAT, 3), (CHAIN, 3), (TREE, 2), (NEAR_FIRST, 3), (DISSEMINATION, 2)]
)
def test_rounds(messages, expected):
    run = run_of(4, messages)
    assert traffic.rounds(run) == expected
    assert traffic.rounds_at_most(lambda n: expected)(run) is None
    if expected:
        why = traffic.rounds_at_most(lambda n: expected - 1)(run)
        assert why == f"it takes {expected} rounds, where {expected - 1} would do"


def test_a_rank_receives_once_a_round():
    assert traffic.rounds(run_of(3, [(0, 2, 4, 1, 2), (1, 2, 4, 1, 3)])) == 2


def test_both_ways_at_once_is_one_round():
    assert traffic.rounds(run_of(2, [(0, 1, 4, 1, 2), (1, 0, 4, 1, 2)])) == 1


@pytest.mark.parametrize(
    ("messages", "rank", "other"),
    [([], 0, 1), (FLAT, 0, 1), (CHAIN, 0, 1), (ROUND_THE_RING, 1, 2), (TOO_EARLY, 0, 1)],
)
def test_who_has_not_heard_from_whom(messages, rank, other):
    why = traffic.everyone_heard_from_everyone(run_of(4, messages))
    assert why == f"rank {rank} returned without having heard from rank {other}, directly or through others"


@pytest.mark.parametrize(
    "messages", [DISSEMINATION, ROUND_THE_RING + [(r, d, b, s + 8, e + 8) for r, d, b, s, e in ROUND_THE_RING]]
)
def test_everyone_heard_from_everyone(messages):
    assert traffic.everyone_heard_from_everyone(run_of(4, messages)) is None


def test_on_a_gpu_what_is_started_together_does_not_tell_of_each_other():
    run = run_of(4, DISSEMINATION)
    change(run, lambda op: {"end": None, "batch": 0})
    assert "rank 0 returned without having heard from rank 1" in traffic.everyone_heard_from_everyone(run)
    change(run, lambda op: {"batch": 0 if op.start in (0.0, 1) and op.sequence < 2 else 1})
    assert traffic.everyone_heard_from_everyone(run) is None


def test_messages_in_all():
    assert traffic.one_message_for_each_other(run_of(4, TREE)) is None
    why = traffic.one_message_for_each_other(run_of(4, DISSEMINATION))
    assert why == "the ranks sent 8 messages in all, where 3 would do"


def test_most_that_a_rank_sends():
    direct = [(r, (r + k) % 4, 12, k, k + 1) for k in (1, 2, 3) for r in range(4)]
    share = traffic.no_rank_sends_more_than(lambda n: (n - 1) / n)
    assert share(run_of(4, direct)) is None
    assert share(run_of(4, TREE)).startswith("rank 0 sent 96 bytes, where 36 would do: 2 times the buffer and not 0.75")
    assert share(run_of(4, [(0, 1, 40, 1, 2)], numel=13)) is None
    assert share(run_of(4, [(0, 1, 60, 1, 2)], numel=13)) is not None


def test_messages_of_a_rank():
    most = traffic.no_rank_has_more_messages_than(lambda n: 2)
    assert most(run_of(4, TREE)) is None
    assert most(run_of(4, FLAT)) == "rank 0 sent 3 messages, where 2 would do"
    into_one = [(dst, src, size, sent, received) for src, dst, size, sent, received in FLAT]
    assert most(run_of(4, into_one)) == "rank 0 received 3 messages, where 2 would do"


def test_size_of_messages():
    assert traffic.no_message_larger_than(48)(run_of(4, TREE)) is None
    assert traffic.no_message_larger_than(47)(run_of(4, TREE)) == "rank 0 sent 48 bytes to rank 2"


def made_up(*by_rank, numel=1, **options):
    """A run in which rank r made the operations ``(kind, peer, batch)`` of ``by_rank[r]`` one after another."""
    run = Run(Case(len(by_rank), numel, torch.float32, (), options), problem=None)
    common = {"bytes": 4, "members": tuple(range(len(by_rank)))}
    run.operations = [
        [
            Operation(kind, rank, 2.0 * i, end=2.0 * i + 1, peer=peer, batch=batch, sequence=i, **common)
            for i, (kind, peer, batch) in enumerate(operations)
        ]
        for rank, operations in enumerate(by_rank)
    ]
    return run


def test_send_first_on_every_rank_can_deadlock():
    n = 4
    run = made_up(*[[("send", (r + 1) % n, None), ("recv", (r - 1) % n, None)] for r in range(n)])
    assert "rank 0 to send to rank 1; rank 1 to send to rank 2" in traffic.cannot_deadlock(run)


def test_one_rank_that_receives_first_breaks_the_cycle():
    n = 4
    orders = [[("send", (r + 1) % n, None), ("recv", (r - 1) % n, None)] for r in range(n)]
    orders[3].reverse()
    assert traffic.cannot_deadlock(made_up(*orders)) is None


def test_a_batch_cannot_deadlock():
    n = 3
    run = made_up(*[[("send", (r + 1) % n, 0), ("recv", (r - 1) % n, 0)] for r in range(n)])
    assert traffic.cannot_deadlock(run) is None


def test_two_batches_in_a_row_are_two_steps():
    run = made_up(
        [("send", 1, 0), ("recv", 1, 1)],
        [("send", 0, 0), ("recv", 0, 1)],
    )
    assert "rank 0 to send to rank 1" in traffic.cannot_deadlock(run)


def test_receiving_from_anyone():
    assert "from whoever comes first" in failure.unmatched(made_up([("send", 1, None)], [("recv", None, None)]))


def test_neighbours_only():
    assert traffic.neighbours_only(made_up([("send", 3, None)], [], [], [])) is None
    assert "to rank 2, which is not its neighbour" in traffic.neighbours_only(made_up([("send", 2, None)], [], [], []))


def test_bytes_of_the_schedule():
    claim = traffic.sends_as_little_as("all_reduce", "ring")
    assert claim(made_up([("send", 1, None)] * 2, [("send", 0, None)] * 2, numel=2)) is None
    assert "rank 1 sent 12 bytes, where 8 would do: 1.5 times the buffer and not 1" in claim(
        made_up([("send", 1, None)] * 2, [("send", 0, None)] * 3, numel=2)
    )


def test_traffic_of_a_schedule():
    claim = traffic.is_that_of("broadcast", "ring")
    assert claim(made_up([("send", 1, None)], [("send", 2, None)], [])) is None
    assert "rank 0 sent 4 bytes to rank 2, expected 0" in claim(made_up([("send", 1, None), ("send", 2, None)], [], []))


def test_forwarding_late():
    claim = traffic.forwards_while_receiving
    receive, send = ("recv", 0, None), ("send", 2, None)
    assert claim(made_up([("send", 1, None)] * 3, [receive, send] * 3, [], chunks=3)) is None
    assert "had received 3 of 3 pieces before it passed on piece 1" in claim(
        made_up([("send", 1, None)] * 3, [receive] * 3 + [send] * 3, [], chunks=3)
    )
    assert "rank 0 sent 1 message, expected 3 pieces" in claim(made_up([("send", 1, None)], [], [], chunks=3))


def test_all_receives_posted_first_is_pipelined():
    run = made_up([("send", 1, None)] * 3, [("recv", 0, None)] * 3 + [("send", 2, None)] * 3, [], chunks=3)
    mine = run.operations[1]
    for k in range(3):
        mine[k] = mine[k]._replace(start=0.0, end=10.0 * k + 5)  # waited for just before piece k is sent
        mine[3 + k] = mine[3 + k]._replace(start=10.0 * k + 6)
    assert traffic.forwards_while_receiving(run) is None


def test_unmatched_and_unwaited():
    run = made_up([("send", 1, None), ("send", 1, None)], [("recv", 0, None)])
    assert failure.unmatched(run) == "rank 0 sent 2 messages to rank 1, which received 1"
    run = made_up([("send", 1, None)], [("recv", 0, None)])
    assert failure.is_clean(run)
    run.operations[1][0] = run.operations[1][0]._replace(bytes=8)
    assert "is 4 bytes, received into 8" in failure.unmatched(run)
    run.operations[0][0] = run.operations[0][0]._replace(end=None)
    assert "rank 0 never called wait() on its send to rank 1" in failure.unwaited(run)


def test_operations_are_these_and_no_others():
    claim = traffic.operations_are(lambda run: [("all_reduce", 4)] * run.numel)
    reduce, barrier = ("all_reduce", None, None), ("barrier", None, None)
    assert claim(made_up([reduce] * 2, [reduce] * 2, numel=2)) is None
    assert claim(made_up([reduce] * 2, [reduce] * 3, numel=2)) == (
        "rank 1 called all_reduce on 4 bytes 3 times, expected 2"
    )
    assert "rank 0 called barrier on 4 bytes 1 time, expected 0" in claim(made_up([reduce, barrier], [reduce], numel=1))
    assert "rank 1 called all_reduce on 4 bytes 0 times, expected 1" in claim(made_up([reduce], [], numel=1))
    assert claim(made_up([], numel=1)) is None  # alone
