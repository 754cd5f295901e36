"""lr goes into the first moment, so that old gradients keep the lr of their time."""
# caught by: test_adam_step
# mistake: state_between_steps
# says: after 2 steps other options are given
# %% adam_step: changed
# -     state["m"].mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
# +     state["m"].mul_(betas[0]).add_(gradient, alpha=lr * (1 - betas[0]))
# @@
# -     parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
# +     parameter.sub_(m_hat / (v_hat.sqrt() + eps))
