"""Counts every collective, not the all-reduces alone."""
# caught by: test_first_missing
# mistake: counted_twice
# %% first_missing: changed
# -         calls[op.rank] += op.kind == "all_reduce"
# +         calls[op.rank] += op.kind not in ("send", "recv")
