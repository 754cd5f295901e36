"""Keeps the memory of its result for the next round, which overwrites what the caller still has."""


# caught by: test_gossip
# mistake: copy_or_view
# says: returned the same memory in two rounds
# %% gossip: changed
# + results = {}
# +
# +
#   def gossip(x, weights):
# @@
# -     mixed = weights[r][r] * x
# +     mixed = results.setdefault((x.shape, x.dtype), torch.empty_like(x))
# +     mixed.copy_(weights[r][r] * x)
