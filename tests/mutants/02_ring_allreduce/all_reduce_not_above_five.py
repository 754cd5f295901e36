"""Right up to five ranks: beyond, the last rounds are missing."""
# caught by: test_ring_all_reduce
# mistake: some_ranks_only
# %% ring_reduce_scatter: changed
# -     for step in range(n - 1):
# +     for step in range(min(n - 1, 4)):
