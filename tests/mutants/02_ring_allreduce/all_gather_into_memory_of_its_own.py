"""Gathers in a copy and lets the tensor point to it."""
# caught by: test_ring_all_gather
# mistake: wrong_place
# %% ring_all_gather: changed
#       rank, n = dist.get_rank(), dist.get_world_size()
# +     tensor.data = tensor.clone()
