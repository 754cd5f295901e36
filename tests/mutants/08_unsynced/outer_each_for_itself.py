"""The changes are not averaged."""


# caught by: test_OuterStep
# mistake: not_exchanged
# says: nothing but the rank's own steps changed it
# %% OuterStep: changed
# -             dist.all_reduce(change)
# -             change /= dist.get_world_size()
