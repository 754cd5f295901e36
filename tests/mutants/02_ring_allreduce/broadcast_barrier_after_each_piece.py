"""A barrier after each piece: the next one begins when this one has come to everyone."""


# caught by: test_pipelined_broadcast
# mistake: no_overlap
# says: rank 0 called barrier
# %% pipelined_broadcast: changed
#               dist.send(piece, dst=(rank + 1) % n)
# +         dist.barrier()
