"""Buffers are averaged in place of rank 0's: an all-reduce."""


# caught by: test_start_alike
# mistake: wrong_kind
# says: called all_reduce; build it from broadcast
# %% start_alike: changed
# -     for tensor in [*module.parameters(), *module.buffers()]:
# +     for tensor in module.parameters():
# @@
#           dist.broadcast(tensor.detach(), src=0)
# +     for tensor in module.buffers():
# +         dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
