"""Takes the mean: one early rank makes the last one look worse."""
# caught by: test_straggler
# says: what rank 3 costs is 10.6667, expected 8
# %% straggler: changed
# -         charges[last] += times[last] - statistics.median(others)
# +         charges[last] += times[last] - statistics.mean(others)
