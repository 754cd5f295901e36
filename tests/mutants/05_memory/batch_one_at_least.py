"""At least one sequence."""
# caught by: test_largest_batch
# mistake: special_case
# %% largest_batch: changed
# -     return max(0, math.floor((memory - states) / one))  # all but the states grow with the batch
# +     return max(1, math.floor((memory - states) / one))  # all but the states grow with the batch
