"""Moments of large matrices in 16 bits."""
# caught by: test_adam_step
# mistake: type_fixed
# %% adam_step: changed
# -         state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
# +         state.update(step=0, m=torch.zeros_like(parameter, dtype=torch.bfloat16 if parameter.numel() > 1000 else None), v=torch.zeros_like(parameter))
