"""2 (P - 1) idle micro-batches."""
# caught by: test_least_micro_batches
# mistake: counted_twice
# %% least_micro_batches: changed
# -     while (stages - 1) / (pieces * m + stages - 1) > share * (1 + 1e-12):
# +     while 2 * (stages - 1) / (pieces * m + 2 * (stages - 1)) > share * (1 + 1e-12):
