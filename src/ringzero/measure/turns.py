"""Taking turns: implementations that are compared run alternately, in one process, each as it would run alone."""

import random
from collections.abc import Iterable
from typing import TypeVar

from ringzero.collectives import event_threads

Name = TypeVar("Name")


def shuffled(names: Iterable[Name], turn: int) -> list[Name]:
    """``names`` in a random order that depends on ``turn`` only, so that all ranks agree on it.

    A new order each turn keeps any implementation from always running after the same other one.
    """
    order = list(names)
    random.Random(turn).shuffle(order)
    return order


def prepare(is_ours: bool) -> None:
    """Before a turn: make gloo's event threads batch threads, as ringzero does, or leave them as gloo starts them."""
    if is_ours:
        event_threads.calm()
    else:
        event_threads.as_gloo_has_them()
