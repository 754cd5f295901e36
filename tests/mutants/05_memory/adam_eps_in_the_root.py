"""ε under the root, as one of the sources prints it."""
# caught by: test_adam_step
# mistake: one_of_a_kind
# says: ε stands under the root here, and outside of it in the formula
# %% adam_step: changed
# -     parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
# +     parameter.sub_(lr * m_hat / (v_hat + eps).sqrt())
