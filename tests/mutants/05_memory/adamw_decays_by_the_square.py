"""lr squared."""
# caught by: test_adamw_step
# mistake: magnitude
# %% adamw_step: changed
# -     parameter.mul_(1 - lr * weight_decay)
# +     parameter.mul_(1 - lr * lr * weight_decay)
