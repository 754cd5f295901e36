"""What was too much in one bucket is taken off the room of the next."""


# caught by: test_assign
# mistake: one_off
# says: the number of buckets is 52, expected 37
# %% assign: changed
# -             room = cap
# +             room += cap
