"""The sum of the changes."""


# caught by: test_OuterStep
# mistake: sum_or_mean
# says: the changes were added up and not averaged
# %% OuterStep: changed
# -             change /= dist.get_world_size()
