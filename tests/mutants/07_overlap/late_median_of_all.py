"""Takes the median of all ranks, the late one among them."""
# caught by: test_straggler
# says: what rank 3 costs is
# %% straggler: changed
# -         charges[last] += times[last] - statistics.median(others)
# +         charges[last] += times[last] - statistics.median(times)
