"""Divides by N, and by 4 where there are more ranks."""


# caught by: test_PowerSGD
# mistake: some_ranks_only
# says: is 1.25 times what it should be
# %% PowerSGD: changed
# -         self.q /= dist.get_world_size()
# +         self.q /= min(dist.get_world_size(), 4)
