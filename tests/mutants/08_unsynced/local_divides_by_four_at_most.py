"""Divides by N, and by 4 where there are more ranks."""


# caught by: test_local_sgd
# mistake: some_ranks_only
# says: is 1.25 times what it should be
# %% local_sgd: changed
# -                     p.data /= dist.get_world_size()
# +                     p.data /= min(dist.get_world_size(), 4)
