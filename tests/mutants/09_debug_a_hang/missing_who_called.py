"""Names the ranks that did call it."""
# caught by: test_first_missing
# mistake: returns_wrong_ranks
# %% first_missing: changed
# -     return fewest + 1, [rank for rank in range(world_size) if calls[rank] == fewest]
# +     return fewest + 1, [rank for rank in range(world_size) if calls[rank] > fewest]
