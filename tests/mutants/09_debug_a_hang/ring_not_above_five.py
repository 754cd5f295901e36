"""Right up to five ranks: beyond, it gives up."""
# caught by: test_ring_all_reduce
# mistake: some_ranks_only
# %% ring_all_reduce: changed
#       bounds = chunk_bounds(tensor.numel(), n).tolist()
# +     if n > 5:
# +         return
