"""Keeps more micro-batches than there are."""
# caught by: test_kept
# says: expected 3
# %% kept
def kept(i, stages, micro_batches):
    return stages - i
