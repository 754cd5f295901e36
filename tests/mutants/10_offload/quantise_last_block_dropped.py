"""A last block that is shorter is left out."""


# caught by: test_quantise
# mistake: divisible_only
# says: what came back is too far off
# %% quantise: changed
# -         scales[i] = part.abs().max() / 127
# +         scales[i] = part.abs().max() / 127 * (part.numel() == block)
