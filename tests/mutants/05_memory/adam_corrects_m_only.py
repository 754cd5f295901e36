"""Only the first moment has a hat."""
# caught by: test_adam_step
# mistake: part_missing
# %% adam_step: changed
# -     v_hat = state["v"] / (1 - betas[1] ** state["step"])
# +     v_hat = state["v"]
