"""Stages counted from 1."""
# caught by: test_kept
# mistake: one_off
# %% kept: changed
# -     return min(stages - i, micro_batches)
# +     return min(stages - i + 1, micro_batches)
