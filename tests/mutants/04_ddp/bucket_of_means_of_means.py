"""Divides before the all-reduce and once more after it."""


# caught by: test_Bucket
# mistake: counted_twice
# says: is 0.25 times what it should be
# %% Bucket: changed
#           self.work.wait()
# +         self.flat /= dist.get_world_size()
