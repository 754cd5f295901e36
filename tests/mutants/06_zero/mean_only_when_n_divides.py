"""Leaves out the elements that N does not divide."""


# caught by: test_mean_gradient
# mistake: divisible_only
# says: the shard has shape (13,), expected (14,)
# %% mean_gradient: changed
#       vector /= dist.get_world_size()
# +     n = dist.get_world_size()
# +     vector = vector[: vector.numel() // n * n]
