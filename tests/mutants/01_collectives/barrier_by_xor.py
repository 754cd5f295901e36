"""Partners are rank ^ 2**k, which are ranks only where N is a power of two."""
# caught by: test_barrier
# mistake: some_ranks_only
# %% barrier: changed
# -         exchange(token, (rank + 2**k) % n, landing, (rank - 2**k) % n)
# +         exchange(token, rank ^ 2**k, landing, rank ^ 2**k)
