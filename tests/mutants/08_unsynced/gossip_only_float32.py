"""What arrives is put into fp32."""


# caught by: test_gossip
# mistake: type_fixed
# says: got a message of 296 bytes and expected one of 148
# %% gossip: changed
# -     received = {s: torch.empty_like(x) for s in others if weights[r][s] != 0}
# +     received = {s: torch.empty(x.shape) for s in others if weights[r][s] != 0}
