"""Its own x is left out."""


# caught by: test_gossip
# mistake: part_missing
# says: its own x is missing
# %% gossip: changed
# -     mixed = weights[r][r] * x
# +     mixed = torch.zeros_like(x)
