"""Rounds to the nearest number of sequences."""
# caught by: test_largest_batch
# mistake: rounded_wrongly
# says: a batch of 149 needs 8.0006e+10 bytes
# %% largest_batch: changed
# -     return max(0, math.floor((memory - states) / one))  # all but the states grow with the batch
# +     return max(0, round((memory - states) / one))
