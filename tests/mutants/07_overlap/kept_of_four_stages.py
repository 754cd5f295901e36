"""Right with 4 stages only."""
# caught by: test_kept
# mistake: some_ranks_only
# says: counted
# %% kept: changed
# -     return min(stages - i, micro_batches)
# +     return min(4 - i, micro_batches)
