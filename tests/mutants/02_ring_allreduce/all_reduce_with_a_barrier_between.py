"""A barrier between the two halves."""


# caught by: test_ring_all_reduce
# mistake: too_much_sent
# says: rank 0 called barrier; build it from send and recv
# %% ring_all_reduce: changed
#       ring_reduce_scatter(tensor)
# +     dist.barrier()
