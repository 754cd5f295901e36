"""Wants less than the share, where as much is allowed."""
# caught by: test_least_micro_batches
# mistake: one_off
# says: 4 micro-batches are enough: they leave 50 % of the step idle
# %% least_micro_batches: changed
# -     while (stages - 1) / (pieces * m + stages - 1) > share * (1 + 1e-12):
# +     while (stages - 1) / (pieces * m + stages - 1) >= share:
