"""Sends to its neighbours alone, and waits for everyone."""


# caught by: test_gossip
# says: called barrier
# %% gossip: changed
# -     mixed = weights[r][r] * x
# +     dist.barrier()
# +     mixed = weights[r][r] * x
