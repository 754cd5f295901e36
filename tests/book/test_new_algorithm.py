"""Adding an algorithm takes what "For contributors" says and nothing else: its two blocks are read from the page."""

import inspect
import re
import textwrap
from pathlib import Path

import pytest

from ringzero import launch
from ringzero.collectives import ALGORITHMS, algorithms, ring
from ringzero.network import candidates, switch
from tests.algorithms import every_algorithm
from tests.collectives import test_collectives, test_program, test_schedules
from tests.network import test_network

PAGE = Path(__file__).parents[2] / "book" / "for_contributors.md"
SECTION = re.search(r"(?s)## To add an algorithm\n(.*?)\n## ", PAGE.read_text()).group(1)
BLOCKS = [textwrap.dedent(block) for block in re.findall(r"(?s)```python\n(.*?) *```", SECTION)]
NEW = ("all_reduce", "chain")


def follow(blocks):
    """Do what the page says, in this process."""
    rounds, row = blocks
    collective, _ = NEW
    exec(rounds, vars(ring))
    algorithms.ALGORITHMS[collective] |= eval("{" + row + "}", vars(algorithms))


@pytest.fixture(autouse=True)
def followed(monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "all_reduce", dict(ALGORITHMS["all_reduce"]))
    monkeypatch.setattr(ring, "chain_all_reduce", None, raising=False)
    follow(BLOCKS)


TESTS = [
    function
    for module in (test_schedules, test_network, test_program)
    for function in vars(module).values()
    if inspect.isfunction(function) and getattr(function, "pytestmark", None) == [every_algorithm.mark]
]


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.__name__)
def test_what_is_tested_of_every_algorithm_is_tested_of_it(test, monkeypatch):
    needs_patch = "monkeypatch" in inspect.signature(test).parameters
    test(*NEW, **({"monkeypatch": monkeypatch} if needs_patch else {}))


def test_it_is_chosen_from_in_a_network():
    assert "chain" in [price.algorithm for price in candidates("all_reduce", switch(4, 1e-6, 1e9))]


def on_a_rank(blocks):
    follow(blocks)
    test_collectives.CASES = [NEW] * 5  # ``compare`` takes every fifth case at a time
    return test_collectives.compare()


def test_it_runs_on_real_ranks():
    returns = launch(on_a_rank, BLOCKS, world_size=3, timeout=60).returns
    assert [wrong for wrong, _ in returns] == [[]] * 3
    assert returns[0][1] == returns[1][1] == returns[2][1]
    assert {name for name, _ in returns[0][1]} == {"chain"}
