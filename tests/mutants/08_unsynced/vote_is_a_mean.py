"""The mean of the signs."""


# caught by: test_majority
# mistake: sum_or_mean
# says: on rank 0 the vote is wrong in 58 of 64 elements
# %% majority: changed
# -     return torch.where(votes >= 0, 1.0, -1.0)
# +     return votes / dist.get_world_size()
