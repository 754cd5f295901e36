"""Tries up to 10,000 micro-batches."""
# caught by: test_least_micro_batches
# mistake: search_too_short
# %% least_micro_batches: changed
# -     while (stages - 1) / (pieces * m + stages - 1) > share * (1 + 1e-12):
# +     while (stages - 1) / (pieces * m + stages - 1) > share * (1 + 1e-12) and m < 10_000:
