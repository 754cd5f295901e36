"""The sum for the mean."""
# caught by: test_average_in_hooks
# mistake: sum_or_mean
# says: layers.0.weight is 4 times what it should be
# %% average_in_hooks: changed
# -         parameter.grad /= dist.get_world_size()
