"""round(log2 N) rounds: right for 1 to 4 ranks, one too few for 5."""
# caught by: test_tree_broadcast
# mistake: some_ranks_only
# %% tree_broadcast: changed
# -     for reach in reversed([2**k for k in range((n - 1).bit_length())]):
# +     from math import log2
# +
# +     for reach in reversed([2**k for k in range(round(log2(n)))]):
