"""One round too few: one rank's numbers are missing from every sum."""
# caught by: test_reduce_scatter
# mistake: last_left_out
# %% reduce_scatter: changed
# -     for k in range(1, n):
# -         dst, src = (rank + k) % n, (rank - k) % n
# -         exchange(chunks[dst], dst, landing, src)
# +     for k in range(1, n - 1):
# +         exchange(chunks[(rank + k) % n], (rank + k) % n, landing, (rank - k) % n)
