"""The velocity begins as 0 in every round."""


# caught by: test_OuterStep
# mistake: state_between_steps
# says: the velocity of the round before was lost
# %% OuterStep: changed
# -             velocity.mul_(self.momentum).add_(change)
# +             velocity = change.clone()
