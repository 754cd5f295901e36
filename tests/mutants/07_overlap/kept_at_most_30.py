"""Never of more than 30 micro-batches."""
# caught by: test_kept
# mistake: search_too_short
# %% kept: changed
# -     return min(stages - i, micro_batches)
# +     return min(stages - i, micro_batches, 30)
