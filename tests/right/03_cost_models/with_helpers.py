"""Small functions for what the exercises share, kept in each cell; a cache."""


# %% doubling_cost
from functools import lru_cache


@lru_cache
def largest_power(n):
    return 1 if n < 2 else 2 * largest_power(n // 2)


def doubling_cost(n):
    p = largest_power(n)
    rounds = p.bit_length() - 1 + (2 if p != n else 0)
    return rounds, rounds * 1.0


# %% halving_doubling_cost
def halving_doubling_cost(n):
    if n & (n - 1):  # some wait: one whole buffer before, one after
        rounds, share = halving_doubling_cost(1 << n.bit_length() - 1)
        return rounds + 2, share + 2
    if n == 1:
        return 0, 0.0
    rounds, share = halving_doubling_cost(n // 2)
    return rounds + 2, share + 2 / n


# %% tree_cost
def tree_cost(n):
    def depth(n):
        return 0 if n == 1 else 1 + depth(-(-n // 2))

    down = up = depth(n)
    return up + down, float(up + down)
