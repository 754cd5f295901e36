"""Bits 1 to 8 of a byte: the last one is lost."""


# caught by: test_majority
# mistake: one_off
# says: byte 0 is 01000000
# %% majority: changed
# -     return (bits.view(-1, 8) << torch.arange(8)).sum(1).to(torch.uint8)
# +     return (bits.view(-1, 8) << torch.arange(1, 9)).sum(1).to(torch.uint8)
