"""uint8: what is below 0 wraps round."""
# caught by: test_quantise
# mistake: wrong_kind
# says: the integers are torch.uint8, not torch.int8
# %% quantise: changed
# -     integers = torch.zeros(x.numel(), dtype=torch.int8)
# +     integers = torch.zeros(x.numel(), dtype=torch.uint8)
# @@
# -             integers[i * block : i * block + part.numel()] = (part / scales[i]).round().to(torch.int8)
# +             integers[i * block : i * block + part.numel()] = (part / scales[i]).round().to(torch.uint8)
