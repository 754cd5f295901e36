"""Ranks that are not equally fast: the seconds of a step for each way to wait, or not to wait.

>>> seconds = [1.0, 1.0, 1.0, 2.0]  # rank 3 is slow
>>> synchronous_seconds(seconds), backup_seconds(seconds, backups=1), round(asynchronous_seconds(seconds), 3)
(2.0, 1.0, 1.143)
>>> [round(expected_step_seconds(64, fixed_seconds=1, tail_seconds=0.1, backups=b), 2) for b in (0, 4)]
[1.47, 1.27]

Seconds are those of the computation; add what communication cannot hide. ``rank_seconds`` has a list for each rank with
its seconds in every step. In ``expected_...`` a rank needs ``fixed_seconds`` and, each time anew, an exponentially
distributed time of mean ``tail_seconds`` more.

Chen et al., "Revisiting distributed synchronous SGD" (backup workers, 2016); Ho et al., "More effective distributed ML
via a stale synchronous parallel parameter server" (2013).
"""

import math

import numpy as np

from ringzero.costs.page.inputs import positive, ranks


def synchronous_seconds(seconds: list[float]) -> float:
    """All wait for the slowest rank. ``seconds``: one number a rank."""
    return max(_checked(seconds))


def backup_seconds(seconds: list[float], backups: int) -> float:
    """A step ends with the gradients of the N - ``backups`` fastest ranks; the others' are dropped.

    The next step begins for all ranks then, as if the late ones had stopped.
    """
    _check_backups(len(_checked(seconds)), backups)
    return sorted(seconds)[len(seconds) - backups - 1]


def asynchronous_seconds(seconds: list[float]) -> float:
    """Nobody waits: the time in which N gradients come, N / sum(1/t), as many as in a synchronous step.

    These N are not one of each rank. A rank of half the speed brings half as many, from older parameters.
    """
    return len(_checked(seconds)) / sum(1 / each for each in seconds)


def bounded_staleness_seconds(rank_seconds: list[list[float]], bound: float) -> list[float]:
    """When each rank ends its last step, where it may begin one only if no rank is over ``bound`` steps behind it.

    With 0 every step is synchronous, with ``math.inf`` nobody waits. A rank that is slow in every step sets the pace of
    all once the others have used up the bound; of delays that strike ranks in turn, the bound hides some.

    >>> turns = [[1, 1, 3, 1, 1, 1], [1, 1, 1, 1, 3, 1]]  # each rank is slow once
    >>> [max(bounded_staleness_seconds(turns, bound)) for bound in (0, 1, 2, math.inf)]
    [10.0, 9.0, 8.0, 8.0]
    """
    steps = _steps(rank_seconds)
    if not bound >= 0:
        raise ValueError(f"bound is {bound}; give the steps that a rank may be ahead of the slowest, 0 or more")
    ends = [0.0] * len(rank_seconds)  # of each rank's last step
    all_ended: list[float] = []  # of every step, on the last rank
    for step in range(steps):
        behind = math.ceil(step - bound) if bound < step else 0  # steps that all must have ended
        gate = all_ended[behind - 1] if behind else 0.0
        ends = [max(end, gate) + rank_seconds[rank][step] for rank, end in enumerate(ends)]
        all_ended.append(max(ends))
    return ends


def local_sgd_seconds(rank_seconds: list[list[float]], inner_steps: int) -> float:
    """Mean seconds of a step where ranks wait for each other only after every ``inner_steps`` steps.

    Delays of one rank's single steps average out among its H steps. A rank that is slow in every step is waited for as
    long as in synchronous training.

    >>> turns = [[1, 1, 3, 1], [1, 3, 1, 1]]
    >>> local_sgd_seconds(turns, inner_steps=1), local_sgd_seconds(turns, inner_steps=4)
    (2.0, 1.5)
    """
    steps = _steps(rank_seconds)
    _check_steps(inner_steps)
    total = 0.0
    for start in range(0, steps, inner_steps):
        total += max(sum(seconds[start : start + inner_steps]) for seconds in rank_seconds)
    return total / steps


def expected_step_seconds(world_size: int, fixed_seconds: float, tail_seconds: float, backups: int = 0) -> float:
    """A synchronous step, without the ``backups`` slowest ranks: fixed + tail (1/(b+1) + 1/(b+2) + ... + 1/N).

    The largest of N exponential times grows with ln N, so more ranks wait longer although none is slow.
    """
    _check_tail(fixed_seconds, tail_seconds)
    _check_backups(ranks(world_size), backups)
    return fixed_seconds + tail_seconds * sum(1 / rank for rank in range(backups + 1, world_size + 1))


def expected_asynchronous_seconds(fixed_seconds: float, tail_seconds: float) -> float:
    """In which N gradients of N ranks come: a rank's mean, whatever N."""
    _check_tail(fixed_seconds, tail_seconds)
    return fixed_seconds + tail_seconds


def expected_local_sgd_seconds(world_size: int, fixed_seconds: float, tail_seconds: float, inner_steps: int) -> float:
    """A step of local SGD: fixed + tail E[slowest sum of H] / H.

    The sum of H exponential times has an Erlang distribution. The mean of the largest of N is the integral of
    1 - P(sum < x)^N, here by Simpson's rule.

    >>> [round(expected_local_sgd_seconds(64, 1, 0.1, inner_steps), 4) for inner_steps in (1, 10, 100)]
    [1.4744, 1.1894, 1.125]
    """
    _check_tail(fixed_seconds, tail_seconds)
    _check_steps(inner_steps)
    end = inner_steps + 10 * math.sqrt(inner_steps) + 2 * math.log(ranks(world_size)) + 40  # none is above this
    x, j = np.linspace(0, end, 2001), np.arange(inner_steps)[:, None]
    log_factorials = np.cumsum(np.log(np.maximum(j, 1)), axis=0)
    above = np.exp(j * np.log(np.maximum(x, 1e-300)) - x - log_factorials).sum(axis=0)  # P(sum > x)
    left = 1 - (1 - np.minimum(above, 1)) ** world_size
    integral = (left[0] + 4 * left[1:-1:2].sum() + 2 * left[2:-1:2].sum() + left[-1]) * end / 2000 / 3
    return fixed_seconds + tail_seconds * float(integral) / inner_steps


def _checked(seconds):
    if not seconds:
        raise ValueError("seconds is empty; give those of at least one rank")
    for each in seconds:
        if not each > 0:
            raise ValueError(f"a rank's step takes {each} seconds; give more than 0")
    return seconds


def _steps(rank_seconds):
    if not rank_seconds:
        raise ValueError("rank_seconds is empty; give a list for at least one rank")
    steps = len(rank_seconds[0])
    for rank, seconds in enumerate(rank_seconds):
        if len(_checked(seconds)) != steps:
            raise ValueError(f"rank {rank} has {len(seconds)} steps and rank 0 {steps}; give all ranks as many")
    return steps


def _check_steps(inner_steps):
    if not inner_steps >= 1:
        raise ValueError(f"inner_steps is {inner_steps}; ranks average after at least 1 step")


def _check_backups(world_size, backups):
    if not 0 <= backups < world_size:
        raise ValueError(f"backups is {backups}; with {world_size} ranks it is 0 to {world_size - 1}")


def _check_tail(fixed_seconds, tail_seconds):
    positive(tail_seconds=tail_seconds)
    if not fixed_seconds >= 0:
        raise ValueError(f"fixed_seconds is {fixed_seconds}; give 0 or more")
