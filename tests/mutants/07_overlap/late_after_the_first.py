"""Charges the time since the first rank came."""
# caught by: test_straggler
# mistake: one_of_a_kind
# says: that is since the first rank came
# %% straggler: changed
# -         charges[last] += times[last] - statistics.median(others)
# +         charges[last] += times[last] - min(others)
