"""Ranks in a box: who starts code that nobody trusts, as the grader does, asks for it by a variable of the environment.

What makes the box is no part of the library. Its module is named in the variable and imported by that name.
"""

import importlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

ASKED_FOR = "RINGZERO_SANDBOX"  # in the environment: the module, and the arguments of its ``box_of_ranks``, as JSON


class Box(Protocol):
    """What starts ranks in a box. ``gpus``: whether they may use this machine's GPUs."""

    @property
    def gpus(self) -> bool: ...

    def enclosed(self, command: Iterable[str], writable: Iterable[Path]) -> list[str]:
        """The command line that runs ``command`` in the box, where it can write to the folders ``writable``."""

    def environment(self) -> dict[str, str]:
        """The environment of its ranks: of this process's own what holds no secret."""

    def give(self, path: Path) -> None:
        """Let its ranks use the file or folder ``path``."""


def asking(module: str, **limits: Any) -> dict[str, str]:
    """The environment of a process that is to start its ranks in ``box_of_ranks(**limits)`` of this ``module``."""
    return {ASKED_FOR: json.dumps([module, limits])}


def asked_for() -> Box | None:
    """The box in which this process is to start its ranks; None if it was not asked to."""
    text = os.environ.get(ASKED_FOR)
    if text is None:
        return None
    module, limits = json.loads(text)
    return importlib.import_module(module).box_of_ranks(**limits)
