"""x goes to everyone, also where the weight is 0."""


# caught by: test_gossip
# mistake: too_much_sent
# says: rank 0 sent 444 bytes to rank 2 in 3 rounds, expected 0; weights[2][0] is 0, x has 148 bytes
# %% gossip: changed
# -     received = {s: torch.empty_like(x) for s in others if weights[r][s] != 0}
# -     together = [dist.P2POp(dist.isend, x, s) for s in others if weights[s][r] != 0]
# +     received = {s: torch.empty_like(x) for s in others}
# +     together = [dist.P2POp(dist.isend, x, s) for s in others]
