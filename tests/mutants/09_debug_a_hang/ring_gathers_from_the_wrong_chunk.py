"""Begins the all-gather with the chunk before."""
# caught by: test_ring_all_reduce
# mistake: one_off
# %% ring_all_reduce: changed
# -         exchange(chunks[(rank - step) % n], chunks[(rank - 1 - step) % n])
# +         exchange(chunks[(rank + 1 - step) % n], chunks[(rank - step) % n])
