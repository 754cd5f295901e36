"""The scales are rounded to bf16."""


# caught by: test_quantise
# mistake: type_fixed
# says: what came back is too far off
# %% quantise: changed
# -     scales = torch.zeros(-(-x.numel() // block))
# +     scales = torch.zeros(-(-x.numel() // block), dtype=torch.bfloat16)
