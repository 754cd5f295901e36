"""Forward passes of a stage come back twice as late."""
# caught by: test_kept
# mistake: magnitude
# %% kept: changed
# -     return min(stages - i, micro_batches)
# +     return min(2 * (stages - i) - 1, micro_batches)
