"""GiB for GB."""
# caught by: test_largest_batch
# mistake: units
# %% largest_batch: changed
# -     return max(0, math.floor((memory - states) / one))  # all but the states grow with the batch
# +     return max(0, math.floor((memory * 2**30 / 1e9 - states) / one))  # all but the states grow with the batch
