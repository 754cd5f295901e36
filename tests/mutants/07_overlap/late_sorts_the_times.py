"""Sorts the times of each collective where they are."""
# caught by: test_straggler
# mistake: changes_its_input
# %% straggler: changed
# -         others = times[:last] + times[last + 1 :]
# -         charges[last] += times[last] - statistics.median(others)
# +         times.sort()
# +         charges[last] += times[-1] - statistics.median(times[:-1])
