"""Goes up, not down."""
# caught by: test_adam_step
# mistake: reversed
# %% adam_step: changed
# -     parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
# +     parameter.add_(lr * m_hat / (v_hat.sqrt() + eps))
