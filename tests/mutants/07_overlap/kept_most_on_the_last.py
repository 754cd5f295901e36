"""Takes the last stage for the first."""
# caught by: test_kept
# mistake: reversed
# says: counted 1, expected 4
# %% kept
def kept(i, stages, micro_batches):
    return min(i + 1, micro_batches)
