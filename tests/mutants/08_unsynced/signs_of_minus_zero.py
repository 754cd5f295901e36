"""The sign bit: -0.0 counts as below 0."""


# caught by: test_majority
# mistake: special_case
# says: these are 0.0 and -0.0, of which none is below 0
# %% majority: changed
# -     bits[: x.numel()] = x >= 0
# +     bits[: x.numel()] = ~torch.signbit(x)
