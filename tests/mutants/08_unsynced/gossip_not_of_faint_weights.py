"""A weight below a thousandth counts as none."""


# caught by: test_gossip
# mistake: threshold_ignored
# says: nothing of its neighbours is in it
# %% gossip: changed
# -     received = {s: torch.empty_like(x) for s in others if weights[r][s] != 0}
# -     together = [dist.P2POp(dist.isend, x, s) for s in others if weights[s][r] != 0]
# +     received = {s: torch.empty_like(x) for s in others if abs(weights[r][s]) > 1e-3}
# +     together = [dist.P2POp(dist.isend, x, s) for s in others if abs(weights[s][r]) > 1e-3]
