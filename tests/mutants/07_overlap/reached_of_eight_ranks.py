"""Right on 8 ranks only."""
# caught by: test_reached
# mistake: some_ranks_only
# says: the bandwidth is
# %% reached: changed
# -     rounds = 2 * (n - 1)
# +     n = 8
# +     rounds = 2 * (n - 1)
