"""Forgets the micro-batch that computes."""
# caught by: test_kept
# mistake: one_off
# says: counted 3, expected 4
# %% kept
def kept(i, stages, micro_batches):
    return min(stages - i - 1, micro_batches)
