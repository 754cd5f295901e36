"""Charges who comes first."""
# caught by: test_straggler
# mistake: reversed
# %% straggler: changed
# -         last = times.index(max(times))
# +         last = times.index(min(times))
