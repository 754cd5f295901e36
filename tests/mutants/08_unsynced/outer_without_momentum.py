"""A plain step along the mean change: the momentum is not there."""
# caught by: test_OuterStep
# mistake: part_missing
# says: that is a step without momentum
# %% OuterStep: changed
# -             velocity.mul_(self.momentum).add_(change)
# -             start.sub_(self.lr * (change + self.momentum * velocity))
# +             start.sub_(self.lr * change)
