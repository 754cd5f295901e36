"""A smaller cap for the first bucket, as torch has it."""


# caught by: test_assign
# mistake: other_algorithm
# says: the number of buckets is 3, expected 2
# %% assign: changed
# -             room = cap
# +             room = cap if len(buckets) > 1 else cap // 2
