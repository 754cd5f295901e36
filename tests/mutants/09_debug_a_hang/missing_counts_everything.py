"""Counts every operation, sends and receives too."""
# caught by: test_first_missing
# mistake: counted_twice
# %% first_missing: changed
# -         calls[op.rank] += op.kind == "all_reduce"
# +         calls[op.rank] += 1
