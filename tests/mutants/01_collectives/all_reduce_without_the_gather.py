"""Half of it: each rank has the sum of its own chunk only."""
# caught by: test_all_reduce
# mistake: part_missing
# %% all_reduce: changed
# -     all_gather(tensor)
