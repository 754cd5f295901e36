"""Reaches of 4, 2 and 1, which is enough up to 8 ranks."""
# caught by: test_tree_broadcast
# mistake: some_ranks_only
# %% tree_broadcast: changed
# -     for reach in reversed([2**k for k in range((n - 1).bit_length())]):
# +     for reach in (4, 2, 1):
