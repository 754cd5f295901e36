"""Divides by N, and by 4 where there are more ranks."""


# caught by: test_average_in_hooks
# mistake: some_ranks_only
# says: is 1.25 times what it should be
# %% average_in_hooks: changed
# -         parameter.grad /= dist.get_world_size()
# +         parameter.grad /= min(dist.get_world_size(), 4)
