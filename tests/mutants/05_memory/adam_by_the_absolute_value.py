"""The mean of |g| for the root of that of g²."""
# caught by: test_adam_step
# mistake: other_algorithm
# %% adam_step: changed
# -     state["v"].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
# +     state["v"].mul_(betas[1]).add_(gradient.abs(), alpha=1 - betas[1])
# @@
# -     parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
# +     parameter.sub_(lr * m_hat / (v_hat + eps))
