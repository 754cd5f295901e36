"""Up the tree, and never down again."""
# caught by: test_tree_cost
# mistake: part_missing
# %% tree_cost
def tree_cost(n):
    depth = (n - 1).bit_length()
    return depth, float(depth)
