"""round(log2 N): right for 2, 6 and 8 ranks, and wrong for 5."""
# caught by: test_tree_cost
# mistake: rounded_wrongly
# %% tree_cost
from math import log2


def tree_cost(n):
    depth = round(log2(n))
    return 2 * depth, 2.0 * depth
