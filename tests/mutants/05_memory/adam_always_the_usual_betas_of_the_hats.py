"""The moments use the betas, the hats 0.9 and 0.999."""
# caught by: test_adam_step
# mistake: argument_ignored
# says: the parameter after 6 steps is off by
# %% adam_step: changed
# -     m_hat = state["m"] / (1 - betas[0] ** state["step"])
# -     v_hat = state["v"] / (1 - betas[1] ** state["step"])
# +     m_hat = state["m"] / (1 - 0.9 ** state["step"])
# +     v_hat = state["v"] / (1 - 0.999 ** state["step"])
