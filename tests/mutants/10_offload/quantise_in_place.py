"""The input is scaled in place."""


# caught by: test_quantise
# mistake: changes_its_input
# says: the input was changed
# %% quantise: changed
# -             integers[i * block : i * block + part.numel()] = (part / scales[i]).round().to(torch.int8)
# +             part /= scales[i]
# +             integers[i * block : i * block + part.numel()] = part.round().to(torch.int8)
