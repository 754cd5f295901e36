"""An integer for zero that is not 0: numbers from the smallest to the largest."""


# caught by: test_quantise
# mistake: wrong_kind
# %% quantise: changed
# -         scales[i] = part.abs().max() / 127
# +         scales[i] = (part.max() - part.min()) / 255
