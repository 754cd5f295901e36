"""A number is added to each scale, so that it is never 0: large beside small numbers."""


# caught by: test_quantise
# mistake: special_case
# says: what came back is too far off
# %% quantise: changed
# -         scales[i] = part.abs().max() / 127
# +         scales[i] = part.abs().max() / 127 + 1e-3
