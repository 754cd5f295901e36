"""Takes the last time out of the list that it was given."""
# caught by: test_straggler
# mistake: changes_its_input
# %% straggler: changed
# -         others = times[:last] + times[last + 1 :]
# -         charges[last] += times[last] - statistics.median(others)
# +         late = times.pop(last)
# +         charges[last] += late - statistics.median(times)
