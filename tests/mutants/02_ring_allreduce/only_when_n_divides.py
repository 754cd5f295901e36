"""Chunks of numel // N elements: the rest at the end is never summed."""
# caught by: test_ring_reduce_scatter
# mistake: divisible_only
# %% ring_reduce_scatter: changed
# -     bounds = chunk_bounds(tensor.numel(), n).tolist()
# -     chunks = [tensor[start:stop] for start, stop in pairwise(bounds)]
# +     size = tensor.numel() // n
# +     chunks = [tensor[i * size : (i + 1) * size] for i in range(n)]
