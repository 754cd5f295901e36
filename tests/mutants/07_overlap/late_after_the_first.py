"""Charges the time since the first rank came."""
# caught by: test_straggler
# says: what rank 3 costs is
# %% straggler: changed
# -         charges[last] += times[last] - statistics.median(others)
# +         charges[last] += times[last] - min(others)
