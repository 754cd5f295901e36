"""Takes the median of all ranks, the late one among them."""
# caught by: test_straggler
# mistake: one_of_a_kind
# says: that is less the median of all ranks, its own time among them
# %% straggler: changed
# -         charges[last] += times[last] - statistics.median(others)
# +         charges[last] += times[last] - statistics.median(times)
