"""It receives from whom it sends to: wrong where the weights are not symmetric."""


# caught by: test_gossip
# mistake: wrong_place
# says: gossip hung with 4 ranks
# %% gossip: changed
# -     together = [dist.P2POp(dist.isend, x, s) for s in others if weights[s][r] != 0]
# +     together = [dist.P2POp(dist.isend, x, s) for s in received]
