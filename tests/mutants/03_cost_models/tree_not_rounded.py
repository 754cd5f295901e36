"""A logarithm that is no whole number of rounds."""
# caught by: test_tree_cost
# mistake: rounded_wrongly
# %% tree_cost
from math import log2


def tree_cost(n):
    return 2 * log2(n), 2 * log2(n)
