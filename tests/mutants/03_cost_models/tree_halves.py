"""Half the buffer in each round."""
# caught by: test_tree_cost
# mistake: other_algorithms_cost
# %% tree_cost: changed
# -     return 2 * depth, 2.0 * depth
# +     return 2 * depth, 1.0 * depth
