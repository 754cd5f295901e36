"""One scale for the whole vector."""


# caught by: test_quantise
# mistake: one_for_all
# says: one scale is used for all blocks
# %% quantise: changed
# -         scales[i] = part.abs().max() / 127
# +         scales[i] = x.abs().max() / 127
