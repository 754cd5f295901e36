"""Corrects the bias of the first ten steps only."""
# caught by: test_adam_step
# mistake: state_between_steps
# says: the parameter after 25 steps is off by
# %% adam_step: changed
# -     m_hat = state["m"] / (1 - betas[0] ** state["step"])
# -     v_hat = state["v"] / (1 - betas[1] ** state["step"])
# +     step = state["step"] if state["step"] <= 10 else 10**9
# +     m_hat = state["m"] / (1 - betas[0] ** step)
# +     v_hat = state["v"] / (1 - betas[1] ** step)
