"""Divides by N."""
# caught by: test_ring_all_reduce
# mistake: sum_or_mean
# %% ring_all_reduce: changed
#           arriving += landing
# +     tensor /= n
#       for step in range(n - 1):
