"""Every rank has at least one number."""
# caught by: test_quantised_reduce_scatter
# mistake: special_case
# says: on rank 0 the chunk has shape (1,), expected (0,)
# %% quantised_reduce_scatter: changed
# -     mine = bounds[rank + 1] - bounds[rank]
# +     mine = max(1, bounds[rank + 1] - bounds[rank])
