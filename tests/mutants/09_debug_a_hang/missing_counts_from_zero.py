"""The first all-reduce is number 0."""
# caught by: test_first_missing
# mistake: one_off
# %% first_missing: changed
# -     return fewest + 1, [rank for rank in range(world_size) if calls[rank] == fewest]
# +     return fewest, [rank for rank in range(world_size) if calls[rank] == fewest]
