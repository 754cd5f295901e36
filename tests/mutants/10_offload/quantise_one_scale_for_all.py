"""One scale for the whole vector."""


# caught by: test_quantise
# says: what came back is too far off
# %% quantise: changed
# -         scales[i] = part.abs().max() / 127
# +         scales[i] = x.abs().max() / 127
