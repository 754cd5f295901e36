"""Number 0 is the highest bit of its byte."""


# caught by: test_majority
# mistake: wrong_place
# says: on rank 0 byte 0 is 00000101, expected 10100000 for the signs - - - - - + - +
# %% majority: changed
# -     return (bits.view(-1, 8) << torch.arange(8)).sum(1).to(torch.uint8)
# +     return (bits.view(-1, 8) << torch.arange(7, -1, -1)).sum(1).to(torch.uint8)
# @@
# -     bits = packed.long()[:, None] >> torch.arange(8) & 1
# +     bits = packed.long()[:, None] >> torch.arange(7, -1, -1) & 1
