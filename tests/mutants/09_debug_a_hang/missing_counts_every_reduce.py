"""Counts whatever has reduce in its name."""
# caught by: test_first_missing
# mistake: one_of_a_kind
# says: returned (4, [1]), expected (3, [1])
# %% first_missing: changed
# -         calls[op.rank] += op.kind == "all_reduce"
# +         calls[op.rank] += "reduce" in op.kind
