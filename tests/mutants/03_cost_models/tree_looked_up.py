"""The depths of a few trees, from a table."""
# caught by: test_tree_cost
# mistake: some_ranks_only
# %% tree_cost
def tree_cost(n):
    depth = {1: 0, 2: 1, 3: 2, 4: 2, 5: 3, 6: 3, 8: 3, 64: 6, 65: 7, 1000: 10, 1024: 10}.get(n, 3)
    return 2 * depth, 2.0 * depth
