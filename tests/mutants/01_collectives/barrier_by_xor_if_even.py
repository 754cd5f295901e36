"""Pairs ranks by exclusive or where their number is even: right for 2 and 4 ranks, and for odd numbers, not for 6."""
# caught by: test_barrier
# mistake: rest_beyond_power_of_two
# says: with 6 ranks
# %% barrier: changed
# -         exchange(token, (rank + 2**k) % n, landing, (rank - 2**k) % n)
# +         pair = n % 2 == 0
# +         exchange(token, rank ^ 2**k if pair else (rank + 2**k) % n, landing, rank ^ 2**k if pair else (rank - 2**k) % n)
