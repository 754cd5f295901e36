"""Sends to its neighbours alone, and waits for everyone."""


# caught by: test_gossip
# mistake: no_overlap
# says: called barrier
# %% gossip: changed
# -     mixed = weights[r][r] * x
# +     dist.barrier()
# +     mixed = weights[r][r] * x
