"""Chunks of numel // N: the rest stays."""
# caught by: test_ring_all_reduce
# mistake: divisible_only
# %% ring_all_reduce: changed
# -     bounds = chunk_bounds(tensor.numel(), n).tolist()
# +     bounds = [r * (tensor.numel() // n) for r in range(n + 1)]
