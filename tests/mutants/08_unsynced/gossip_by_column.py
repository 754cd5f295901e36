"""Column r of the weights, not row r."""


# caught by: test_gossip
# mistake: wrong_place
# says: rank r is to use row r of the weights, not column r
# %% gossip: changed
# -     mixed = weights[r][r] * x
# -     for s in received:
# -         mixed += weights[r][s] * received[s]
# +     mixed = weights[r][r] * x
# +     for s in received:
# +         mixed += weights[s][r] * received[s]
