"""Divides by the sum of the magnitudes of its row: the same where no weight is below 0."""


# caught by: test_gossip
# mistake: special_case
# says: is 0.5 times what it should be
# %% gossip: changed
# -     return mixed
# +     return mixed / sum(abs(each) for each in weights[r])
