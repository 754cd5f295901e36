"""Charges the time since the rank before it came."""
# caught by: test_straggler
# mistake: one_of_a_kind
# says: that is since the rank before it came
# %% straggler: changed
# -         charges[last] += times[last] - statistics.median(others)
# +         charges[last] += times[last] - max(others)
