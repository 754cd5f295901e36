"""It writes into the x that it was given."""


# caught by: test_gossip
# mistake: changes_its_input
# says: rank 0 changed the x it was given
# %% gossip: changed
# -     mixed = weights[r][r] * x
# +     mixed = x.mul_(weights[r][r])
