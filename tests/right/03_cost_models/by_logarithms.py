"""Depths by logarithms of floats, and the rest where a logarithm is not whole."""


# %% tree_cost
import math


def tree_cost(n):
    depth = math.ceil(math.log2(n))
    return 2 * depth, 2 * depth


# %% doubling_cost
import math


def doubling_cost(n):
    k = math.floor(math.log2(n))
    rounds = k if 2**k == n else k + 2
    return [rounds, rounds]


# %% halving_doubling_cost
import numpy as np


def halving_doubling_cost(n):
    k = int(np.floor(np.log2(n)))
    P = 2**k
    if P == n:
        return 2 * np.log2(n), 2 * (n - 1) / n
    return np.array([2 * k + 2, 2 * (1 - 1 / P) + 2])
