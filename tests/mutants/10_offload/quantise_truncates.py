"""Integers are cut off toward zero, not rounded."""


# caught by: test_quantise
# mistake: rounded_wrongly
# says: the integers are cut off, not rounded
# %% quantise: changed
# -             integers[i * block : i * block + part.numel()] = (part / scales[i]).round().to(torch.int8)
# +             integers[i * block : i * block + part.numel()] = (part / scales[i]).to(torch.int8)
