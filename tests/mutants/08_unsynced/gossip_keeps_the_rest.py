"""What its row lacks of 1 it takes of its own x, not what the diagonal says."""


# caught by: test_gossip
# mistake: weights_ignored
# says: with its weight
# %% gossip: changed
# -     mixed = weights[r][r] * x
# +     mixed = (1 - sum(weights[r][s] for s in received if weights[r][s] > 0)) * x
