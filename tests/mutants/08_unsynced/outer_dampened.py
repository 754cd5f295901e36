"""The velocity is a mean of what was before and the new change, not their sum."""


# caught by: test_OuterStep
# mistake: one_of_a_kind
# says: the velocity is a sum, and nothing is multiplied with 1 - momentum
# %% OuterStep: changed
# -             velocity.mul_(self.momentum).add_(change)
# +             velocity.mul_(self.momentum).add_(change, alpha=1 - self.momentum)
