"""A weight below 0 counts as none."""


# caught by: test_gossip
# mistake: special_case
# says: after round 1 x is
# %% gossip: changed
# -     received = {s: torch.empty_like(x) for s in others if weights[r][s] != 0}
# -     together = [dist.P2POp(dist.isend, x, s) for s in others if weights[s][r] != 0]
# +     received = {s: torch.empty_like(x) for s in others if weights[r][s] > 0}
# +     together = [dist.P2POp(dist.isend, x, s) for s in others if weights[s][r] > 0]
