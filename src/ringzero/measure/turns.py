"""Taking turns: what is compared runs alternately, on the same ranks, each as it would run alone. Imports no torch."""

import gc
import math
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from ringzero.collectives import event_threads

Name = TypeVar("Name")
Taken = TypeVar("Taken")
WARM_UP = 2  # turns
IN_PLACE, OUT_OF_PLACE = "in place", "out of place"  # forms of a collective
CALMED = "calmed"  # gloo's own collective, its event thread made a batch thread as ringzero makes it


def in_turns(names: Iterable[Name], once: Callable[[Name], Taken], turns: int, warm_up: int = WARM_UP,
             fewest: int = 0, limit: float = math.inf) -> dict[Name, list[Taken]]:  # fmt: skip
    """``{name: what once(name) returned in each turn}``. In a turn each has its call, in an order new each time.

    ``warm_up`` turns before them do not count. When ``limit`` seconds are over on a rank, ``fewest`` turns are enough.
    """
    found: dict[Name, list[Taken]] = {name: [] for name in names}
    started = time.monotonic()
    for turn in range(-warm_up, turns):
        for name in shuffled(found, turn):
            taken = once(name)
            if turn >= 0:
                found[name].append(taken)
        if limit < math.inf and turn + 1 >= fewest and on_slowest(time.monotonic() - started) > limit:
            break
    return found


def seconds_in_turns(calls: Mapping[Name, Callable[[], object]], turns: int, group: Any = None,
                     peers: Collection[Name] = (), **limits: Any) -> dict[Name, list[float]]:  # fmt: skip
    """On each rank: ``{name: seconds of each of its calls, on the slowest rank}``. ``peers`` are those not ours."""

    def once(name: Name) -> float:
        prepare(is_ours=name not in peers)
        gc.collect(0)
        (seconds,) = times(calls[name], tries=1, group=group)
        return on_slowest(seconds, group)

    return in_turns(calls, once, turns, **limits)


def times(call: Callable[..., object], *args: Any, tries: int, group: Any = None) -> list[float]:
    """On each rank: the seconds of each of ``tries`` calls of ``call(*args)``, which a barrier starts together."""
    import torch.distributed as dist

    seconds = []
    for _ in range(tries):
        dist.barrier(group)
        start = time.perf_counter()
        call(*args)
        seconds.append(time.perf_counter() - start)
    return seconds


def on_slowest(seconds: float, group: Any = None) -> float:
    """The largest of all ranks' ``seconds``."""
    import torch
    import torch.distributed as dist

    number = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(number, op=dist.ReduceOp.MAX, group=group)
    return float(number.item())


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
