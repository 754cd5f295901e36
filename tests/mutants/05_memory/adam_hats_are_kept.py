"""The moments are replaced by their hats."""
# caught by: test_adam_step
# mistake: state_between_steps
# %% adam_step: changed
# -     m_hat = state["m"] / (1 - betas[0] ** state["step"])
# -     v_hat = state["v"] / (1 - betas[1] ** state["step"])
# +     state["m"].div_(1 - betas[0] ** state["step"])
# +     state["v"].div_(1 - betas[1] ** state["step"])
# +     m_hat, v_hat = state["m"], state["v"]
