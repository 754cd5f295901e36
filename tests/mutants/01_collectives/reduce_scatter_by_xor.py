"""Partners are rank ^ k, which are ranks only where N is a power of two."""
# caught by: test_reduce_scatter
# mistake: some_ranks_only
# %% reduce_scatter: changed
# -         dst, src = (rank + k) % n, (rank - k) % n
# +         dst = src = rank ^ k
