"""Exact numbers wherever there is a division; a pair may have names."""


# %% count
from collections import defaultdict
from fractions import Fraction


def count(schedule):
    share = Fraction(0)
    for transfers in schedule.rounds:
        load = defaultdict(Fraction)
        for t in transfers:
            load[t.src, None] += Fraction(1, schedule.chunks)
            load[None, t.dst] += Fraction(1, schedule.chunks)
        share += max(load.values())
    return len(schedule.rounds), share


# %% ring_cost
from collections import namedtuple
from fractions import Fraction

Cost = namedtuple("Cost", "rounds share")


def ring_cost(n):
    return Cost(rounds=2 * (n - 1), share=Fraction(2 * (n - 1), n))


# %% crossover
from fractions import Fraction


def crossover(first, second, alpha, beta):
    (r1, s1), (r2, s2) = first, second
    if s1 == s2:
        return None
    size = Fraction(alpha) * (Fraction(r2) - Fraction(r1)) / (Fraction(beta) * (Fraction(s1) - Fraction(s2)))
    return size if size > 0 else None


# %% state_bytes
from fractions import Fraction


def state_bytes(params, stage, n):
    each = [12, 2, 2]
    return params * sum(Fraction(b, n if i < stage else 1) for i, b in enumerate(each))


# %% least_ranks
from fractions import Fraction
from math import ceil


def least_ranks(params, stage, memory):
    left = memory - sum([12, 2, 2][stage:]) * params
    if left < 0 or left == 0 and stage > 0:
        return None
    return max(1, ceil(Fraction(sum([12, 2, 2][:stage]) * params, left))) if stage else 1


# %% bandwidths
from fractions import Fraction


def bandwidths(line, collective, n):
    fields = line.split()
    gb, s = Fraction(fields[0]) / 10**9, Fraction(fields[5]) / 10**6
    times = {"all_reduce": Fraction(2 * n - 2, n), "broadcast": 1, "reduce": 1}.get(collective, Fraction(n - 1, n))
    return [gb / s, times * gb / s]
