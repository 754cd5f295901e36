"""Overwrites where it should add."""
# caught by: test_ring_all_reduce
# mistake: overwritten
# %% ring_all_reduce: changed
# -         arriving += landing
# +         arriving.copy_(landing)
