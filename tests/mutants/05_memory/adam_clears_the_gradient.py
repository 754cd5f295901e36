"""Sets the gradient to 0 when it is done."""
# caught by: test_adam_step
# mistake: changes_its_input
# %% adam_step: changed
#       parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
# +     gradient.zero_()
