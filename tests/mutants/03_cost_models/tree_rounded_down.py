"""The logarithm rounded down: right for powers of two only."""
# caught by: test_tree_cost
# mistake: rounded_wrongly
# %% tree_cost
def tree_cost(n):
    depth = n.bit_length() - 1
    return 2 * depth, 2.0 * depth
