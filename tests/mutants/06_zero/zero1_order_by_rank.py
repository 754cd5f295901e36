"""Each rank begins with another layer, so that not all work on the same one: their all-gathers do not meet."""
# caught by: test_Zero1
# mistake: not_every_rank
# says: every rank must pass a tensor of the same size and dtype
# %% Zero1: changed
# -         for i, flat in enumerate(self.flats):
# +         rank, many = dist.get_rank(), len(self.flats)
# +         for i in [(rank + k) % many for k in range(many)]:
# +             flat = self.flats[i]
