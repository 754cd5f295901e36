"""What is compared is measured in turns: each once a turn, in changing order, on the slowest rank. No time asserted."""

import time

import torch.distributed as dist

from ringzero import launch
from ringzero.measure import turns


def test_each_has_its_call_in_each_turn_and_the_first_turns_do_not_count():
    calls = []
    found = turns.in_turns("abc", lambda name: calls.append(name) or len(calls), turns=20, warm_up=2)
    order = ["".join(calls[i : i + 3]) for i in range(0, len(calls), 3)]
    assert len(order) == 22
    assert all(sorted(turn) == ["a", "b", "c"] for turn in order)
    assert len(set(order)) > 3
    assert sorted(sum(found.values(), [])) == list(range(7, 67))


def test_when_time_is_over_the_fewest_turns_are_enough(monkeypatch):
    monkeypatch.setattr(turns, "on_slowest", lambda seconds: seconds)
    assert turns.in_turns("a", lambda name: 0, turns=9, fewest=4, limit=-1.0) == {"a": [0] * 4}
    assert turns.in_turns("a", lambda name: 0, turns=9, fewest=4, limit=600.0) == {"a": [0] * 9}


def test_a_call_is_as_long_as_on_the_slowest_rank():
    def measured():
        calls = {"uneven": lambda: time.sleep(0.05 * dist.get_rank()), "nothing": lambda: None}
        return turns.seconds_in_turns(calls, 2)

    first, second = launch(measured, world_size=2, device="cpu").returns
    assert first == second
    assert min(first["uneven"]) >= 0.05
