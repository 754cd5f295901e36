"""Sums in a copy and lets the tensor point to it: what it returns is a view of no memory of the caller's."""
# caught by: test_ring_reduce_scatter
# mistake: wrong_place
# %% ring_reduce_scatter: changed
#       rank, n = dist.get_rank(), dist.get_world_size()
# +     tensor.data = tensor.clone()
