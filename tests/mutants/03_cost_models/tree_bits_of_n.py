"""n.bit_length()."""
# caught by: test_tree_cost
# mistake: one_off
# %% tree_cost: changed
# -     depth = (n - 1).bit_length()  # log2 of n, rounded up
# +     depth = n.bit_length()  # log2 of n, rounded up
