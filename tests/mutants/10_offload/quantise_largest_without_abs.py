"""The largest number in place of the largest magnitude."""


# caught by: test_quantise
# mistake: magnitude
# says: not of the largest magnitude
# %% quantise: changed
# -         scales[i] = part.abs().max() / 127
# +         scales[i] = part.max().clamp(min=1e-30) / 127
# @@
# -             integers[i * block : i * block + part.numel()] = (part / scales[i]).round().to(torch.int8)
# +             integers[i * block : i * block + part.numel()] = (
# +                 (part / scales[i]).round().clamp(-127, 127).to(torch.int8)
# +             )
