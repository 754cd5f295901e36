"""The logarithm as a float, rounded up."""
# caught by: test_tree_cost
# mistake: rounded_wrongly
# %% tree_cost: changed
# -     depth = (n - 1).bit_length()  # log2 of n, rounded up
# +     depth = ceil(__import__('math').log2(n))
