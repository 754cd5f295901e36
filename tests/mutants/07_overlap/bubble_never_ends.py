"""Asks again and again for the same number of micro-batches."""
# caught by: test_least_micro_batches
# mistake: no_end
# says: came to no end: is this loop endless?
# %% least_micro_batches: changed
# -         m += 1
# +         pass
