"""Exact numbers wherever there is a division."""


# %% least_tokens
from fractions import Fraction


def least_tokens(flops, bandwidth, n, element):
    return Fraction(2 * element * (n - 1), n) / Fraction(bandwidth) * Fraction(flops) / 4


# %% reached
from fractions import Fraction


def reached(size, n, alpha, beta):
    message = Fraction(size) / n
    return message / (Fraction(alpha) + message * Fraction(beta))


# %% largest_degree
from fractions import Fraction


def largest_degree(flops, bandwidth, width, element):
    return math.floor(1 + Fraction(2 * width) * Fraction(bandwidth) / (element * Fraction(flops)))


# %% all_reduces
from fractions import Fraction


def all_reduces(backwards, sizes, cap, alpha, beta):
    backwards, sizes = [Fraction(b) for b in backwards][::-1], sizes[::-1]
    alpha, beta = Fraction(alpha), Fraction(beta)
    pairs, i = [], 0
    while i < len(sizes):
        j, held = i, 0
        while j < len(sizes) and held < cap:
            held += sizes[j]
            j += 1
        begin = max(sum(backwards[:j]), pairs[-1][1] if pairs else Fraction(0))
        pairs.append((begin, begin + alpha + beta * held))
        i = j
    return pairs


# %% exposed
from fractions import Fraction


def exposed(operations):
    total = Fraction(0)
    events = sorted({Fraction(t) for op in operations for t in (op.start, op.end)})
    for t0, t1 in zip(events, events[1:]):
        streams = [op.stream for op in operations if op.start <= t0 and op.end >= t1]
        if "communication" in streams and "compute" not in streams:
            total += t1 - t0
    return total


# %% forward_pass
from fractions import Fraction


def forward_pass(gathers, forwards, ahead):
    n = len(gathers)
    computed = [Fraction(0)] * (n + 1)
    arrived = Fraction(0)
    for i in range(n):
        may_begin = computed[max(0, i - ahead)]
        arrived = max(arrived, may_begin) + Fraction(gathers[i])
        computed[i + 1] = max(arrived, computed[i]) + Fraction(forwards[i])
    return computed[n]


# %% least_micro_batches
from fractions import Fraction


def least_micro_batches(stages, share, pieces):
    # (P - 1) / (v m + P - 1) <= share
    least = (stages - 1) * (1 / Fraction(share) - 1) / pieces
    return max(1, -(-least.numerator // least.denominator))


# %% straggler
from fractions import Fraction


def straggler(enters, worth):
    charged = {}
    for row in enters:
        row = [Fraction(t) for t in row]
        late = max(row)
        who = row.index(late)
        row.remove(late)
        charged[who] = charged.get(who, Fraction(0)) + late - statistics.median(row)
    who = max(charged, key=charged.get)
    if 10 * charged[who] >= 6 * sum(charged.values()) and charged[who] >= Fraction(worth) * len(enters):
        return who, charged[who]
    return None
