"""Decays the parameter laid flat, a copy where its memory is not in order."""
# caught by: test_adamw_step
# mistake: copy_or_view
# %% adamw_step: changed
# -     parameter.mul_(1 - lr * weight_decay)
# +     parameter.reshape(-1).mul_(1 - lr * weight_decay)
