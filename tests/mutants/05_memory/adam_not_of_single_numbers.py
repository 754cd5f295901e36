"""Writes with a slice, which a tensor without dimensions does not have."""
# caught by: test_adam_step
# mistake: special_case
# %% adam_step: changed
# -     parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
# +     parameter[:] = parameter - lr * m_hat / (v_hat.sqrt() + eps)
