"""Divides by N, and by 4 where there are more ranks."""


# caught by: test_Bucket
# mistake: some_ranks_only
# says: is 1.25 times what it should be
# %% Bucket: changed
# -         self.flat /= dist.get_world_size()
# +         self.flat /= min(dist.get_world_size(), 4)
