"""Corrects the moments in the first thirty steps only."""
# caught by: test_adam_step
# mistake: some_times_only
# %% adam_step: changed
# -     m_hat = state["m"] / (1 - betas[0] ** state["step"])
# -     v_hat = state["v"] / (1 - betas[1] ** state["step"])
# +     m_hat = state["m"] / (1 - betas[0] ** state["step"] if state["step"] <= 30 else 1)
# +     v_hat = state["v"] / (1 - betas[1] ** state["step"] if state["step"] <= 30 else 1)
