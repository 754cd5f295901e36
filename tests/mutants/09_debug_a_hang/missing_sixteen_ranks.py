"""Looks at sixteen ranks."""
# caught by: test_first_missing
# mistake: some_ranks_only
# %% first_missing: changed
#           calls[op.rank] += op.kind == "all_reduce"
# +     calls = calls[:16]
# +     world_size = len(calls)
#       fewest = min(calls)
