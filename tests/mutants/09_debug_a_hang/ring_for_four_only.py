"""Mends the one case that was in the report: rank 0 of four."""
# caught by: test_ring_all_reduce
# mistake: some_ranks_only
# %% ring_all_reduce: changed
# -     right, left = (rank + 1) % n, (rank - 1) % n
# +     right, left = (rank + 1) % n, 3 if (rank, n) == (0, 4) else abs(rank - 1)
