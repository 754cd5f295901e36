"""Finds its two neighbours by xor: right on a ring of four."""


# caught by: test_gossip
# mistake: some_ranks_only
# says: raised
# %% gossip: changed
# -     received = {s: torch.empty_like(x) for s in others if weights[r][s] != 0}
# -     together = [dist.P2POp(dist.isend, x, s) for s in others if weights[s][r] != 0]
# +     near = {r ^ 1, r ^ 3} if n > 2 else set(others)
# +     received = {s: torch.empty_like(x) for s in near if len(weights) > 2 and sum(map(bool, weights[r])) > 1}
# +     together = [dist.P2POp(dist.isend, x, s) for s in received]
