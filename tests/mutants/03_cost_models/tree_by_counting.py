"""Builds the schedule and counts it: too long for many ranks."""
# caught by: test_tree_cost
# mistake: ready_made
# %% tree_cost
def tree_cost(n):
    return count(ALGORITHMS["all_reduce"]["binomial"](n))
