"""One round too few of the all-gather."""
# caught by: test_ring_all_reduce
# mistake: last_left_out
# %% ring_all_reduce: changed
#           arriving += landing
# -     for step in range(n - 1):
# +     for step in range(n - 2):
#           exchange(chunks[(rank - step) % n], chunks[(rank - 1 - step) % n])
