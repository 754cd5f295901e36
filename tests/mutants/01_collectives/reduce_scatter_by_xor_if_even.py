"""Pairs ranks by exclusive or where their number is even: right for 2 and 4 ranks, and for odd numbers, not for 6."""
# caught by: test_reduce_scatter
# mistake: rest_beyond_power_of_two
# says: with 6 ranks
# %% reduce_scatter: changed
# -         dst, src = (rank + k) % n, (rank - k) % n
# +         dst, src = (rank ^ k, rank ^ k) if n % 2 == 0 else ((rank + k) % n, (rank - k) % n)
