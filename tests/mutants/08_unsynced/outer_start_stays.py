"""Every round's change is counted from the very first start."""


# caught by: test_OuterStep
# says: on rank 0 after round 2 the vector of parameters is off by up to
# %% OuterStep: changed
# -             start.sub_(self.lr * (change + self.momentum * velocity))
# -             p.copy_(start)
# +             p.copy_(start - self.lr * (change + self.momentum * velocity))
