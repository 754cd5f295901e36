"""Ordinary momentum, not Nesterov's."""


# caught by: test_OuterStep
# mistake: one_of_a_kind
# says: that is a step of ordinary momentum, not of Nesterov's
# %% OuterStep: changed
# -             start.sub_(self.lr * (change + self.momentum * velocity))
# +             start.sub_(self.lr * velocity)
