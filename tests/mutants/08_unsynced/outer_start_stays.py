"""Every round's change is counted from the very first start."""


# caught by: test_OuterStep
# mistake: state_between_steps
# says: each round's change was counted from the very first start
# %% OuterStep: changed
# -             start.sub_(self.lr * (change + self.momentum * velocity))
# -             p.copy_(start)
# +             p.copy_(start - self.lr * (change + self.momentum * velocity))
