"""Of tests that are many and alike: some for each commit, so that a run stays short and all are tried in turn."""

import functools
import subprocess
from pathlib import Path

thorough = False  # ``pytest --thorough``: conftest.py sets it before tests are collected


def in_turn(things, parts):
    """Every ``parts``-th of ``things``, others with each commit; all of them with ``pytest --thorough``."""
    things = list(things)
    return things if thorough else things[number_of_the_commit() % parts :: parts]


@functools.cache
def number_of_the_commit():
    """A number that another commit has another of; 0 where there is no git."""
    try:
        command = ["git", "rev-parse", "HEAD"]
        said = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return 0
    return int(said.stdout[:8] or "0", 16)
