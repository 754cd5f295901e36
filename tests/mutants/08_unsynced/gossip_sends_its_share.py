"""The sender multiplies, with its own row of the weights."""


# caught by: test_gossip
# mistake: wrong_place
# says: rank r is to use row r of the weights, not column r
# %% gossip: changed
# -     together = [dist.P2POp(dist.isend, x, s) for s in others if weights[s][r] != 0]
# +     together = [dist.P2POp(dist.isend, weights[r][s] * x, s) for s in others if weights[s][r] != 0]
# @@
# -         mixed += weights[r][s] * received[s]
# +         mixed += received[s]
