"""parameter = parameter - ...: a new tensor, which nobody sees; the parameter stays as it was."""
# caught by: test_adam_step
# mistake: copy_or_view
# says: the parameter is what it was before: change it in place
# %% adam_step: changed
# -     parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
# +     parameter = parameter - lr * m_hat / (v_hat.sqrt() + eps)
