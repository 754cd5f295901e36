"""There is always a block."""
# caught by: test_quantise
# mistake: special_case
# says: the scales are torch.float32 of shape (1,), expected torch.float32 of shape (0,)
# %% quantise: changed
# -     scales = torch.zeros(-(-x.numel() // block))
# +     scales = torch.zeros(1 + (x.numel() - 1) // block if x.numel() else 1)
