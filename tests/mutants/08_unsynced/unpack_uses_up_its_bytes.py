"""Shifts the bits out of the bytes that it was given."""


# caught by: test_majority
# mistake: changes_its_input
# says: unpack_signs changed the bytes that it was given
# %% majority: changed
# -     bits = packed.long()[:, None] >> torch.arange(8) & 1
# +     bits = []
# +     for _ in range(8):
# +         bits.append(packed.long() & 1)
# +         packed >>= 1
# +     bits = torch.stack(bits, 1)
