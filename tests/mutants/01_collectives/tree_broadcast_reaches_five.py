"""Rounds that are looked up, for up to 5 ranks."""
# caught by: test_tree_broadcast
# mistake: some_ranks_only
# %% tree_broadcast: changed
# -     for reach in reversed([2**k for k in range((n - 1).bit_length())]):
# +     for reach in {1: (), 2: (1,), 3: (2, 1), 4: (2, 1), 5: (4, 2, 1)}.get(n, (2, 1)):
