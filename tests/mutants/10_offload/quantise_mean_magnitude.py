"""The scale is that of the root mean square."""


# caught by: test_quantise
# mistake: wrong_maximum
# %% quantise: changed
# -         scales[i] = part.abs().max() / 127
# +         scales[i] = part.square().mean().sqrt() / 127
