"""The scale is the largest number over the largest integer: 0/0 for a block of zeros."""


# caught by: test_quantise
# mistake: special_case
# says: too far off
# %% quantise: changed
# -         scales[i] = part.abs().max() / 127
# -         if scales[i] > 0:
# -             integers[i * block : i * block + part.numel()] = (part / scales[i]).round().to(torch.int8)
# +         whole = (part * (127 / part.abs().max())).round().to(torch.int8)
# +         integers[i * block : i * block + part.numel()] = whole
# +         scales[i] = part.abs().max() / whole.abs().max()
