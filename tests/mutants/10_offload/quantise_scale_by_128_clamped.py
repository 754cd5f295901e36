"""127 in place of 128: the largest number is off by a whole step."""


# caught by: test_quantise
# mistake: one_of_a_kind
# says: the scale is m/128, not m/127
# %% quantise: changed
# -         scales[i] = part.abs().max() / 127
# +         scales[i] = part.abs().max() / 128
# @@
# -             integers[i * block : i * block + part.numel()] = (part / scales[i]).round().to(torch.int8)
# +             integers[i * block : i * block + part.numel()] = (
# +                 (part / scales[i]).round().clamp(-127, 127).to(torch.int8)
# +             )
