"""The plain mean of what there is; the weights only say whom to talk to."""


# caught by: test_gossip
# mistake: weights_ignored
# says: the weights are not used
# %% gossip: changed
# -     mixed = weights[r][r] * x
# -     for s in received:
# -         mixed += weights[r][s] * received[s]
# -     return mixed
# +     return sum(received.values(), x) / (1 + len(received))
