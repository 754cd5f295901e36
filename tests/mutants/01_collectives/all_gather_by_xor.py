"""Partners are rank ^ k, which are ranks only where N is a power of two."""
# caught by: test_all_gather
# mistake: some_ranks_only
# %% all_gather: changed
# -         dst, src = (rank + k) % n, (rank - k) % n
# +         dst = src = rank ^ k
