"""As many on every stage."""
# caught by: test_kept
# mistake: one_for_all
# says: counted 4, expected 3
# %% kept
def kept(i, stages, micro_batches):
    return min(stages, micro_batches)
