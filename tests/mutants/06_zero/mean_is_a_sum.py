"""The sum over the ranks, not the mean."""


# caught by: test_mean_gradient
# mistake: sum_or_mean
# says: the shard is 4 times what it should be
# %% mean_gradient: changed
# -     vector /= dist.get_world_size()
