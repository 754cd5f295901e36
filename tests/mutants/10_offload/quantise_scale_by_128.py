"""The largest number becomes 128, which int8 does not have."""


# caught by: test_quantise
# mistake: one_of_a_kind
# says: what came back is too far off
# %% quantise: changed
# -         scales[i] = part.abs().max() / 127
# +         scales[i] = part.abs().max() / 128
