"""Rounds at random."""


# caught by: test_quantise
# mistake: random_numbers
# %% quantise: changed
# -             integers[i * block : i * block + part.numel()] = (part / scales[i]).round().to(torch.int8)
# +             some = (part / scales[i] + torch.rand_like(part)).floor().clamp(-127, 127)
# +             integers[i * block : i * block + part.numel()] = some.to(torch.int8)
