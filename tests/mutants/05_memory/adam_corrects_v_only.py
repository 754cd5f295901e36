"""Only the second moment has a hat."""
# caught by: test_adam_step
# mistake: part_missing
# %% adam_step: changed
# -     m_hat = state["m"] / (1 - betas[0] ** state["step"])
# +     m_hat = state["m"]
