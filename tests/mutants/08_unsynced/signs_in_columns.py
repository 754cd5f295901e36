"""Bit 0 of all bytes first, then bit 1."""


# caught by: test_majority
# mistake: wrong_place
# says: on rank 0 byte 0 is 11101010, expected 10100000 for the signs - - - - - + - +
# %% majority: changed
# -     return (bits.view(-1, 8) << torch.arange(8)).sum(1).to(torch.uint8)
# +     return (bits.view(8, -1) << torch.arange(8)[:, None]).sum(0).to(torch.uint8)
# @@
# -     bits = packed.long()[:, None] >> torch.arange(8) & 1
# +     bits = packed.long() >> torch.arange(8)[:, None] & 1
