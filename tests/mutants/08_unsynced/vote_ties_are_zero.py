"""A tie is 0."""


# caught by: test_majority
# mistake: special_case
# says: on rank 0 the vote is wrong where as many ranks say 1 as say -1: that is 1.0
# %% majority: changed
# -     return torch.where(votes >= 0, 1.0, -1.0)
# +     return votes.sign()
