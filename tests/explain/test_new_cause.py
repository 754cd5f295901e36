"""Adding a cause of a hang takes what "For contributors" says and nothing else: its blocks are read from the page."""

import itertools
import re
import textwrap
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
import torch.distributed as dist

from ringzero import RankError, launch
from ringzero.explain import diagnose, waits
from ringzero.explain.state import RankState
from ringzero.record.operation import Operation
from tests.explain import test_diagnose

PAGE = Path(__file__).parents[2] / "book" / "for_contributors.md"
SECTION = re.search(r"(?s)## To add a cause of a hang\n(.*?)\n## ", PAGE.read_text()).group(1)
CAUSE, ROW, PROGRAM, EXPECTED = (textwrap.dedent(b) for b in re.findall(r"(?s)```python\n(.*?) *```", SECTION))


@pytest.fixture
def program(tmp_path):
    """The page's program, as a file of its own: ranks get it by value, as from a notebook."""
    file = tmp_path / "programs.py"
    file.write_text(PROGRAM)
    names = {"__name__": "__main__", "dist": dist, "torch": torch}
    exec(compile(PROGRAM, str(file), "exec"), names)
    return names["tags"]


@pytest.fixture
def followed(monkeypatch):
    module = {"NamedTuple": NamedTuple, "Operation": Operation, "RankState": RankState, "itertools": itertools}
    exec(CAUSE, module)
    (finder,) = eval(f"[{ROW}]", {"tags": SimpleNamespace(**module)})
    place = diagnose.IN_ORDER.index(waits.waiting_for_one_another)
    monkeypatch.setattr(diagnose, "IN_ORDER", [*diagnose.IN_ORDER[:place], finder, *diagnose.IN_ORDER[place:]])


def test_it_is_said_and_its_line_is_named(program, followed):
    ((_, expected),) = eval("{" + EXPECTED + "}", {"tags": program}).items()
    test_diagnose.check(program, expected, PROGRAM.splitlines(), first=1)


def test_nobody_says_it_yet(program):
    with pytest.raises(RankError) as caught:
        launch(program, world_size=3, timeout=8.0)
    assert "with tag" not in str(caught.value)
