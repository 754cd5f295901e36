"""Keeps more micro-batches than there are."""
# caught by: test_kept
# mistake: kept_in_memory
# says: expected 3
# %% kept
def kept(i, stages, micro_batches):
    return stages - i
