"""Blames the rank that is first, because its all-reduce is the longest."""
# caught by: test_straggler
# mistake: reversed
# says: named rank 0, and the others wait for rank 3
# %% straggler: changed
# -         last = times.index(max(times))
# +         last = times.index(min(times))
# @@
# -         charges[last] += times[last] - statistics.median(others)
# +         charges[last] += statistics.median(others) - times[last]
