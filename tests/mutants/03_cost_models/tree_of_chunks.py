"""A tree that sends an Nth of the buffer, as a ring does."""
# caught by: test_tree_cost
# mistake: other_algorithms_cost
# %% tree_cost
def tree_cost(n):
    depth = (n - 1).bit_length()
    return 2 * depth, 2 * depth / n
