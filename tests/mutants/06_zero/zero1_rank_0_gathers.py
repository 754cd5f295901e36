"""Only rank 0 gathers, as if it collected the shards for the others."""
# caught by: test_Zero1
# mistake: not_every_rank
# says: rank 0 stands apart
# %% Zero1: changed
# -             all_gather(flat.whole)
# +             if dist.get_rank() == 0:
# +                 all_gather(flat.whole)
