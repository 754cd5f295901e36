"""Gives the parameter new memory in each step; who holds a view of the old one sees no change."""
# caught by: test_adam_step
# mistake: copy_or_view
# %% adam_step: changed
# -     parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
# +     parameter.data = parameter.data - lr * m_hat / (v_hat.sqrt() + eps)
