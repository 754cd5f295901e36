"""λ is in the velocity, too."""


# caught by: test_OuterStep
# mistake: counted_twice
# says: after round 1
# %% OuterStep: changed
# -             velocity.mul_(self.momentum).add_(change)
# +             velocity.mul_(self.momentum).add_(self.lr * change)
