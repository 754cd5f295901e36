"""Keeps all micro-batches, as GPipe does."""
# caught by: test_kept
# mistake: kept_in_memory
# says: counted 16, expected 4
# %% kept
def kept(i, stages, micro_batches):
    return micro_batches
