"""Looks factors and bytes up in dicts; answers are lists and whole floats."""


# %% tree_cost
def tree_cost(n):
    return [2 * len(bin(n - 1)[2:]) if n > 1 else 0] * 2


# %% doubling_cost
def doubling_cost(n):
    bits = format(n, "b")
    rounds = len(bits) - 1 + 2 * ("1" in bits[1:])
    return float(rounds), float(rounds)


# %% halving_doubling_cost
def halving_doubling_cost(n):
    bits = format(n, "b")
    extra = 2 * ("1" in bits[1:])
    return 2 * (len(bits) - 1) + extra, 2.0 - 2.0 ** (2 - len(bits)) + extra


# %% crossover
def crossover(first, second, alpha, beta):
    try:
        size = alpha / beta * (first[0] - second[0]) / (second[1] - first[1])
    except ZeroDivisionError:
        return None
    if size > 0:
        return size


# %% best_chunks
import math


def best_chunks(n, size, alpha, beta):
    """K (K + 1) is at least (n - 2) size β / α from the best K on."""
    x = (n - 2) * size * beta / alpha
    return float(max(1, math.ceil((math.sqrt(1 + 4 * x) - 1) / 2)))


# %% bandwidths
def bandwidths(line, collective, n):
    FACTORS = {
        "all_reduce": 2 * (n - 1) / n,
        "reduce_scatter": (n - 1) / n,
        "all_gather": (n - 1) / n,
        "all_to_all": (n - 1) / n,
        "gather": (n - 1) / n,
        "scatter": (n - 1) / n,
        "broadcast": 1,
        "reduce": 1,
    }
    size, _, _, _, _, time, *_ = line.split()
    algbw = int(size) / 1000 / float(time)
    return algbw, FACTORS[collective] * algbw


# %% state_bytes
def state_bytes(params, stage, n):
    return {
        0: 16 * params,
        1: 4 * params + 12 * params / n,
        2: 2 * params + 14 * params / n,
        3: 16 * params / n,
    }[stage]


# %% least_ranks
def least_ranks(params, stage, memory):
    whole, cut = {0: (16, 0), 1: (4, 12), 2: (2, 14), 3: (0, 16)}[stage]
    free = memory - whole * params
    if cut == 0:
        return 1.0 if free >= 0 else None
    if free <= 0:
        return None
    return -((-cut * params) // free)
