"""N rounds, where N - 1 are enough: the finished chunks go on for one more round."""
# caught by: test_ring_reduce_scatter
# mistake: one_off
# says: expected 12000: 1 times the buffer and not 0.75
# %% ring_reduce_scatter: changed
# -     for step in range(n - 1):
# +     for step in range(n):
