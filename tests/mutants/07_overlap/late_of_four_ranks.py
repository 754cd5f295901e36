"""Right on 4 ranks only."""
# caught by: test_straggler
# mistake: some_ranks_only
# says: raised IndexError: list index out of range
# %% straggler: changed
# -         last = times.index(max(times))
# +         last = max(range(4), key=lambda rank: times[rank])
