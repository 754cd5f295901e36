"""0 counts as below 0."""


# caught by: test_majority
# mistake: special_case
# says: on rank 0 byte 0 is 00000000, expected 11111111 for the signs + + + + + + + +
# %% majority: changed
# -     bits[: x.numel()] = x >= 0
# +     bits[: x.numel()] = x > 0
