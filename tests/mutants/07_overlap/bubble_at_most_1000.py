"""Tries a thousand micro-batches, and no more."""
# caught by: test_least_micro_batches
# mistake: search_too_short
# says: 1000 micro-batches leave
# %% least_micro_batches: changed
# -     while (stages - 1) / (pieces * m + stages - 1) > share * (1 + 1e-12):
# +     while (stages - 1) / (pieces * m + stages - 1) > share * (1 + 1e-12) and m < 1000:
