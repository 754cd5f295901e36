"""Charges the time since the rank before it came."""
# caught by: test_straggler
# says: what rank 3 costs is
# %% straggler: changed
# -         charges[last] += times[last] - statistics.median(others)
# +         charges[last] += times[last] - max(others)
