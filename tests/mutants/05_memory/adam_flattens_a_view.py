"""Works on the parameter laid flat, which is a copy where its memory is not in order."""
# caught by: test_adam_step
# mistake: copy_or_view
# %% adam_step: changed
# -     parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
# +     flat = parameter.reshape(-1)
# +     flat.sub_((lr * m_hat / (v_hat.sqrt() + eps)).reshape(-1))
