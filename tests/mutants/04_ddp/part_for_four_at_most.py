"""Ranks above the fourth share the samples of the fourth."""


# caught by: test_loss_of_part
# mistake: some_ranks_only
# says: the mean over the ranks of the gradient
# %% loss_of_part: changed
# -     rank, n = dist.get_rank(), dist.get_world_size()
# +     rank, n = min(dist.get_rank(), 3), min(dist.get_world_size(), 4)
