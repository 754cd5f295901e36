"""Takes the mean: one early rank makes the last one look worse."""
# caught by: test_straggler
# mistake: one_of_a_kind
# says: that is less the mean of the others
# %% straggler: changed
# -         charges[last] += times[last] - statistics.median(others)
# +         charges[last] += times[last] - statistics.mean(others)
