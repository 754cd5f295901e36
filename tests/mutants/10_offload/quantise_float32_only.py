"""The largest magnitude of bf16 is divided in bf16."""
# caught by: test_quantise
# mistake: type_fixed
# says: what came back is too far off in 16 of 130 numbers
# %% quantise: changed
# -     for i, part in enumerate(x.float().split(block) if x.numel() else []):
# +     for i, part in enumerate(x.split(block) if x.numel() else []):
