"""Notes lr in the first step and never looks at it again."""
# caught by: test_adam_step
# mistake: argument_ignored
# says: after 2 steps other options are given
# %% adam_step: changed
# -         state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
# +         state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter), lr=lr)
# @@
# -     parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
# +     parameter.sub_(state["lr"] * m_hat / (v_hat.sqrt() + eps))
