"""A barrier ends each round."""


# caught by: test_ring_reduce_scatter
# mistake: too_much_sent
# says: rank 0 called barrier
# %% ring_reduce_scatter: changed
#           arriving += landing
# +         dist.barrier()
