"""The others add zeros: all get what rank 0 has."""


# caught by: test_Bucket
# mistake: wrong_kind
# says: the gradient of weight is off
# %% Bucket: changed
# -         self.flat /= dist.get_world_size()
# +         if dist.get_rank():
# +             self.flat.zero_()
