"""Parameters and gradients of two bytes in fp32, too."""


# caught by: test_tier_bytes
# mistake: counted_twice
# says: what is on the device is 160, expected 320 (0.5 times it)
# %% tier_bytes: changed
# -     each = 2 if precision == "mixed" else 4  # bytes of a parameter, and of a gradient
# +     each = 2
