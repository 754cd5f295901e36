"""Claims about who sent what to whom and when, on runs made by hand."""

import pytest
import torch

from ringzero.lab import claims
from ringzero.lab.runs import Case, Run


def run_of(ranks, messages, numel=12):
    """A run in which each of ``messages`` (src, dst, bytes, sent at, received at) was sent."""
    run = Run(Case(ranks, numel, torch.float32, (), {}), problem=None, operations=[[] for _ in range(ranks)])
    for src, dst, size, sent, received in messages:
        common = {"bytes": size, "batch": None}
        run.operations[src].append({"kind": "send", "peer": dst, "start": sent, "end": sent + 0.1, **common})
        run.operations[dst].append({"kind": "recv", "peer": src, "start": 0.0, "end": received, **common})
    for ops in run.operations:
        ops.sort(key=lambda op: op["start"] if op["kind"] == "send" else op["end"])
        for sequence, op in enumerate(ops):
            op["sequence"] = sequence
    return run


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
    assert claims.rounds(run) == expected
    assert claims.rounds_at_most(lambda n: expected)(run) is None
    if expected:
        why = claims.rounds_at_most(lambda n: expected - 1)(run)
        assert why == f"it takes {expected} rounds, where {expected - 1} would do"


def test_a_rank_receives_once_a_round():
    assert claims.rounds(run_of(3, [(0, 2, 4, 1, 2), (1, 2, 4, 1, 3)])) == 2


def test_both_ways_at_once_is_one_round():
    assert claims.rounds(run_of(2, [(0, 1, 4, 1, 2), (1, 0, 4, 1, 2)])) == 1


@pytest.mark.parametrize(
    ("messages", "rank", "other"),
    [([], 0, 1), (FLAT, 0, 1), (CHAIN, 0, 1), (ROUND_THE_RING, 1, 2), (TOO_EARLY, 0, 1)],
)
def test_who_has_not_heard_from_whom(messages, rank, other):
    why = claims.everyone_heard_from_everyone(run_of(4, messages))
    assert why == f"rank {rank} returned without having heard from rank {other}, directly or through others"


@pytest.mark.parametrize(
    "messages", [DISSEMINATION, ROUND_THE_RING + [(r, d, b, s + 8, e + 8) for r, d, b, s, e in ROUND_THE_RING]]
)
def test_everyone_heard_from_everyone(messages):
    assert claims.everyone_heard_from_everyone(run_of(4, messages)) is None


def test_on_a_gpu_what_is_started_together_does_not_tell_of_each_other():
    run = run_of(4, DISSEMINATION)
    for ops in run.operations:
        for op in ops:
            op["end"], op["batch"] = None, 0
    assert "rank 0 returned without having heard from rank 1" in claims.everyone_heard_from_everyone(run)
    for ops in run.operations:
        for op in ops:
            op["batch"] = 0 if op["start"] in (0.0, 1) and op["sequence"] < 2 else 1
    assert claims.everyone_heard_from_everyone(run) is None


def test_messages_and_bytes_in_all():
    run = run_of(4, TREE)
    assert claims.in_all(lambda n: n - 1, lambda n: n - 1)(run) is None
    assert claims.in_all(lambda n: n - 2, lambda n: n - 1)(run) == "the ranks sent 3 messages in all, where 2 would do"
    why = claims.in_all(lambda n: n - 1, lambda n: n - 2)(run)
    assert why == "the ranks sent 3 times the buffer in all, where 2 would do"


def test_most_that_a_rank_sends():
    direct = [(r, (r + k) % 4, 12, k, k + 1) for k in (1, 2, 3) for r in range(4)]
    share = claims.no_rank_sends_more_than(lambda n: (n - 1) / n)
    assert share(run_of(4, direct)) is None
    assert share(run_of(4, TREE)).startswith("rank 0 sent 96 bytes of a buffer of 48: 2 times the buffer, where 0.75")
    assert share(run_of(4, [(0, 1, 40, 1, 2)], numel=13)) is None
    assert share(run_of(4, [(0, 1, 60, 1, 2)], numel=13)) is not None


def test_messages_of_a_rank():
    most = claims.no_rank_has_more_messages_than(lambda n: 2)
    assert most(run_of(4, TREE)) is None
    assert most(run_of(4, FLAT)) == "rank 0 sent 3 messages, where 2 would do"
    into_one = [(dst, src, size, sent, received) for src, dst, size, sent, received in FLAT]
    assert most(run_of(4, into_one)) == "rank 0 received 3 messages, where 2 would do"


def test_size_of_messages():
    assert claims.no_message_larger_than(48)(run_of(4, TREE)) is None
    assert claims.no_message_larger_than(47)(run_of(4, TREE)) == "rank 0 sent 48 bytes to rank 2"


def test_numbers():
    assert claims.numbers(("a", "b"), (1, 2.0), (1, 2)) is None
    assert claims.numbers(("a", "b"), (1, 2.5), (1, 2)) == "b is 2.5, expected 2 (1.25 times it)"
    assert claims.numbers(("a", "b"), 3, (1, 2)) == "returned 3, not (a, b)"
    assert claims.numbers(("a", "b"), (1, 2, 3), (1, 2)) == "returned (1, 2, 3), not (a, b)"


def test_tensors_by_name():
    right = {"a": torch.tensor([1.0, -2.0]), "b": torch.zeros(2)}
    close = claims.close_by_name

    def why(**wrong):
        return close("the gradient of", [right, right | wrong], right)

    assert close("the gradient of", [right, right], right) is None
    assert why(a=right["a"] * 3) == "on rank 1 the gradient of a is 3 times what it should be"
    assert why(a=right["b"]) == "on rank 1 the gradient of a is all zeros; its largest element should be 2"
    assert why(a=right["a"] + 1) == "on rank 1 the gradient of a is off by up to 1; its largest element should be 2"
    assert why(b=right["a"]) == "on rank 1 the gradient of b is off by up to 2; its largest element should be 0"
    assert why(b=None) == "on rank 1 the gradient of b is None, not a tensor"
    assert why(b=torch.zeros(3)) == "on rank 1 the gradient of b has shape (3,), expected (2,)"
    assert "off by up to nan" in why(a=right["a"] * float("nan"))
