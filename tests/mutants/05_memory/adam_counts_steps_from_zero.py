"""Corrects the bias with the number of steps before this one (and one at the first)."""
# caught by: test_adam_step
# mistake: one_off
# says: the steps are counted from 0, the formula counts them from 1
# %% adam_step: changed
# -     state["step"] += 1
# @@
# -     m_hat = state["m"] / (1 - betas[0] ** state["step"])
# -     v_hat = state["v"] / (1 - betas[1] ** state["step"])
# +     t = max(1, state["step"])
# +     state["step"] += 1
# +     m_hat, v_hat = state["m"] / (1 - betas[0] ** t), state["v"] / (1 - betas[1] ** t)
