"""When ranks fail: how often, how often to save, and which share of the time is useful work.

>>> round(job_mttf(gpus=16384, gpus_per_node=8, failures_per_1000_node_days=6.5), 1)  # hours
1.8
>>> round(young_daly_interval(checkpoint_seconds=60, mtbf_seconds=3 * 3600))  # seconds
1138
>>> round(goodput(1138, checkpoint_seconds=60, mtbf_seconds=3 * 3600, restart_seconds=300), 3)
0.874

Goodput is useful work over wall time: 1 is a run in which nothing fails and nothing is saved. Failures come
independently of each other, at a rate of 1/mu for the whole job (``mtbf_seconds`` mu). ``interval_seconds`` tau is the
useful work between two checkpoints, and training waits ``checkpoint_seconds`` delta while each is written.

Young, "A first order approximation to the optimum checkpoint interval", CACM 17 (1974); Daly, "A higher order estimate
of the optimum checkpoint interval for restart dumps", FGCS 22 (2006).
"""

import math

from ringzero.costs.page.inputs import positive, ranks


def job_mttf(gpus: int, gpus_per_node: int, failures_per_1000_node_days: float) -> float:
    """Mean hours until one of the job's nodes fails; any failure stops the job (Kokolis et al. 2025).

    >>> round(job_mttf(1024, 8, 6.5), 1), round(job_mttf(131072, 8, 6.5), 2)
    (28.8, 0.23)
    """
    positive(gpus=gpus, gpus_per_node=gpus_per_node, failures_per_1000_node_days=failures_per_1000_node_days)
    failures_per_day = failures_per_1000_node_days / 1000 * gpus / gpus_per_node
    return 24 / failures_per_day


def young_daly_interval(checkpoint_seconds: float, mtbf_seconds: float) -> float:
    """Seconds of work between checkpoints that lose the least time, to first order: sqrt(2 delta mu).

    More checkpoints cost more writing. Fewer make a failure lose more: half an interval on average.
    """
    positive(checkpoint_seconds=checkpoint_seconds, mtbf_seconds=mtbf_seconds)
    return math.sqrt(2 * checkpoint_seconds * mtbf_seconds)


def daly_interval(checkpoint_seconds: float, mtbf_seconds: float) -> float:
    """Daly's higher-order estimate of the interval with the best ``goodput`` (2006).

    sqrt(2 delta mu) (1 + sqrt(delta / 2 mu) / 3 + (delta / 2 mu) / 9) - delta for a checkpoint delta below 2 mu, and
    mu otherwise.

    >>> round(young_daly_interval(60, 10800)), round(daly_interval(60, 10800))
    (1138, 1099)
    """
    positive(checkpoint_seconds=checkpoint_seconds, mtbf_seconds=mtbf_seconds)
    if checkpoint_seconds >= 2 * mtbf_seconds:
        return mtbf_seconds
    part = checkpoint_seconds / (2 * mtbf_seconds)
    longer = 1 + math.sqrt(part) / 3 + part / 9
    return math.sqrt(2 * checkpoint_seconds * mtbf_seconds) * longer - checkpoint_seconds


def goodput(
    interval_seconds: float, checkpoint_seconds: float, mtbf_seconds: float, restart_seconds: float = 0
) -> float:
    """Useful work over wall time, exact for failures at a constant rate (Daly 2006).

    A failure costs the work since the last checkpoint, and ``restart_seconds`` until training goes on from there. It
    may also strike while a checkpoint is written, which is then lost, and during a restart, which then begins again. So
    an interval with its checkpoint takes mu e^(restart/mu) (e^((tau + delta)/mu) - 1) seconds on average.
    """
    _check(interval_seconds, checkpoint_seconds, mtbf_seconds, restart_seconds)
    work = (interval_seconds + checkpoint_seconds) / mtbf_seconds
    restart = restart_seconds / mtbf_seconds
    if work + restart > 700:  # e^700 is the largest that a float holds
        return 0.0
    return interval_seconds / mtbf_seconds / (math.exp(restart) * math.expm1(work))


def goodput_first_order(
    interval_seconds: float, checkpoint_seconds: float, mtbf_seconds: float, restart_seconds: float = 0
) -> float:
    """1 - delta/tau - (tau/2 + restart)/mu: a checkpoint an interval, and half an interval and a restart a failure.

    Close to ``goodput`` where checkpoint, interval and restart are short beside the time between failures, and the
    checkpoint beside the interval; 0 where the sum falls below 0. It is largest at ``young_daly_interval``.
    """
    _check(interval_seconds, checkpoint_seconds, mtbf_seconds, restart_seconds)
    lost = (interval_seconds / 2 + restart_seconds) / mtbf_seconds
    return max(0.0, 1 - checkpoint_seconds / interval_seconds - lost)


def goodput_with_quorum(
    world_size: int,
    mtbf_seconds: float,
    step_seconds: float,
    reconfigure_seconds: float = 0,
    replacement_seconds: float = 0,
) -> float:
    """Useful work over wall time where the survivors go on without the dead rank, and no checkpoint is read.

    ``mtbf_seconds`` mu is that of all N ranks together, so one rank fails every N mu seconds. A failure costs all ranks
    the step in which it strikes, and ``reconfigure_seconds`` in which the survivors form a new group. The rank is
    missing for ``replacement_seconds``: the others then process N-1 of N samples, in steps of the same length.

    u / (1 + u (step + reconfigure) / mu), where u = N mu / (N mu + replacement) is the share of ranks that are
    there. This is exact if failures and replacements pause while all wait, and otherwise right to first order in that
    wait over mu.

    >>> round(goodput_with_quorum(2048, 6480, step_seconds=10, reconfigure_seconds=20, replacement_seconds=600), 4)
    0.9953
    """
    ranks(world_size)
    positive(mtbf_seconds=mtbf_seconds, step_seconds=step_seconds)
    _not_negative("reconfigure_seconds", reconfigure_seconds)
    _not_negative("replacement_seconds", replacement_seconds)
    there = world_size * mtbf_seconds / (world_size * mtbf_seconds + replacement_seconds)
    wait = step_seconds + reconfigure_seconds
    return there / (1 + there * wait / mtbf_seconds)


def _check(interval_seconds, checkpoint_seconds, mtbf_seconds, restart_seconds):
    positive(interval_seconds=interval_seconds, mtbf_seconds=mtbf_seconds)
    _not_negative("checkpoint_seconds", checkpoint_seconds)
    _not_negative("restart_seconds", restart_seconds)


def _not_negative(name, seconds):
    if not seconds >= 0:
        raise ValueError(f"{name} is {seconds}; give 0 or more")
